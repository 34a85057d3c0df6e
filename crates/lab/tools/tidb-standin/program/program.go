// Package program holds what every stand-in has: a command line, a configuration file, certificates, a log and HTTP.
//
// The command lines are those of the programs that are stood in for. Options without a meaning here are accepted and named in the
// log, so that a start script needs no case of its own for the lab.
package program

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"
)

// Notice is what every stand-in says of itself, in its log and wherever it is asked for its state.
const Notice = "a stand-in of the Windlass lab: it keeps no data and answers no query"

// Program is one stand-in's command line and configuration.
type Program struct {
	// Name is the program that is stood in for, such as tikv-server.
	Name string
	// Version is the release that it pretends to be, such as v8.1.0.
	Version string
	// Arguments are the words of the command line that are no options.
	Arguments []string

	options map[string]string
	file    map[string]any
}

// Parse reads a command line. The option `config` names the configuration file. An option that is not among `known` is named in the log
// and otherwise ignored.
func Parse(name string, arguments []string, config string, known ...string) (*Program, error) {
	program := &Program{Name: name, Version: Version(), options: map[string]string{}, file: map[string]any{}}
	program.read(arguments)
	for option := range program.options {
		if option != config && !slices.Contains(known, option) {
			log.Printf("the option --%s means nothing to a stand-in and is ignored", option)
		}
	}
	if path := program.options[config]; path != "" {
		file, err := ReadFile(path)
		if err != nil {
			return nil, err
		}
		program.file = file
	}
	return program, nil
}

// Version is the release that the stand-ins pretend to be; their image says which.
func Version() string {
	return Setting("STANDIN_VERSION", "v8.1.0")
}

func (p *Program) read(arguments []string) {
	for at := 0; at < len(arguments); at++ {
		name := strings.TrimLeft(arguments[at], "-")
		if name == arguments[at] {
			p.Arguments = append(p.Arguments, name)
			continue
		}
		if name, value, found := strings.Cut(name, "="); found {
			p.options[name] = value
			continue
		}
		p.options[name] = "true"
		if at+1 < len(arguments) && !strings.HasPrefix(arguments[at+1], "-") {
			at++
			p.options[name] = arguments[at]
		}
	}
}

// ReadFile reads a TOML file as a flat map: `[server] addr` is `server.addr`.
func ReadFile(path string) (map[string]any, error) {
	var tree map[string]any
	if _, err := toml.DecodeFile(path, &tree); err != nil {
		return nil, fmt.Errorf("the configuration file %s cannot be read: %w", path, err)
	}
	flat := map[string]any{}
	flatten(flat, "", tree)
	return flat, nil
}

func flatten(flat map[string]any, prefix string, tree map[string]any) {
	for key, value := range tree {
		flat[prefix+key] = value
		if below, is := value.(map[string]any); is {
			flatten(flat, prefix+key+".", below)
		}
	}
}

// Option is an option of the command line, or nothing.
func (p *Program) Option(name string) string {
	return p.options[name]
}

// File is a value of the configuration file as text, or nothing.
func (p *Program) File(key string) string {
	return Text(p.file, key)
}

// Table is a table of the configuration file, with its values as text.
func (p *Program) Table(key string) map[string]string {
	table, _ := p.file[key].(map[string]any)
	text := map[string]string{}
	for name, value := range table {
		text[name] = fmt.Sprint(value)
	}
	return text
}

// Text is a value of a flat map as text, or nothing.
func Text(file map[string]any, key string) string {
	if value, found := file[key]; found {
		return fmt.Sprint(value)
	}
	return ""
}

// First is the first value that is not empty.
func First(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

// Setting is an environment variable that concerns only the stand-in.
func Setting(name, otherwise string) string {
	return First(os.Getenv(name), otherwise)
}

// Announce says in the log what this is.
func (p *Program) Announce() {
	log.Printf("%s %s: this is %s", p.Name, p.Version, Notice)
}

// Trouble logs what goes wrong again and again: once, until it is something else or over.
type Trouble struct {
	last string
}

// Note logs an error that was not the last one; no error is the end of the trouble.
func (t *Trouble) Note(what string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != t.last {
		log.Printf("%s: %s", what, text)
	}
	t.last = text
}

// UntilTold is a context that ends when the process is asked to end.
func UntilTold() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}
