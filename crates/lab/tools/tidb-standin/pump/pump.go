// Package pump stands in for Pump, the collector of TiDB's binlogs: its state is in the etcd of PD, where the real one has it, and it
// goes offline when it is told to.
package pump

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"windlass.dev/lab/tidb-standin/program"
	"windlass.dev/lab/tidb-standin/registry"
)

const prefix = "/tidb-binlog/v1/pumps/"

// node is one Pump's state, as it is registered.
type node struct {
	ID          string `json:"nodeId"`
	Host        string `json:"host"`
	State       string `json:"state"`
	IsAlive     bool   `json:"isAlive"`
	Score       int64  `json:"score"`
	Label       any    `json:"label"`
	MaxCommitTS int64  `json:"maxCommitTS"`
	UpdateTS    int64  `json:"updateTS"`
}

type server struct {
	program *program.Program
	client  *clientv3.Client
	faults  *program.Faults
	// leave ends the program, after it was told to pause or to close.
	leave chan struct{}

	mutex sync.Mutex
	node  node
}

// Run stands in for Pump until it is told to end, to pause or to close.
func Run(arguments []string) error {
	p, err := program.Parse("pump", arguments, "config", "pd-urls", "addr", "advertise-addr", "data-dir", "node-id", "L")
	if err != nil {
		return err
	}
	p.Announce()
	ctx, cancel := program.UntilTold()
	defer cancel()
	security := program.Security{Authority: p.File("security.ssl-ca"), Certificate: p.File("security.ssl-cert"), Key: p.File("security.ssl-key")}
	client, err := registry.Open(program.First(p.Option("pd-urls"), p.File("pd-urls")), security)
	if err != nil {
		return err
	}
	defer client.Close()
	listen := host(program.First(p.Option("addr"), p.File("addr"), "0.0.0.0:8250"))
	id, err := identify(program.First(p.Option("data-dir"), p.File("data-dir"), "/data"), program.First(p.Option("node-id"), p.File("node-id")), listen)
	if err != nil {
		return err
	}
	s := &server{
		program: p,
		client:  client,
		faults:  program.NewFaults(),
		leave:   make(chan struct{}),
		node:    node{ID: id, Host: host(program.First(p.Option("advertise-addr"), p.File("advertise-addr"), listen)), State: "online"},
	}
	for trouble, err := (program.Trouble{}), s.write(ctx); err != nil; err = s.write(ctx) {
		trouble.Note("waiting to register", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	if err := program.Serve(ctx, listen, security, s.faults, s.handler()); err != nil {
		return err
	}
	log.Printf("node %s at %s", id, s.node.Host)
	s.work(ctx)
	return nil
}

// host is an address without scheme: the real program takes both.
func host(address string) string {
	if parsed, err := url.Parse(address); err == nil && parsed.Host != "" {
		return parsed.Host
	}
	return address
}

// identify is the id that the data directory has, or a new one made of the machine's name and the port.
func identify(directory, wanted, listen string) (string, error) {
	path := filepath.Join(directory, ".node")
	text, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if wanted == "" {
		machine, err := os.Hostname()
		if err != nil {
			return "", err
		}
		wanted = machine + listen[strings.LastIndex(listen, ":"):]
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return "", err
	}
	return wanted, os.WriteFile(path, []byte(wanted), 0o644)
}

// work says every two seconds that the node lives, until it is told to end.
func (s *server) work(ctx context.Context) {
	ticker := time.NewTicker(2 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-s.leave:
			return
		case <-ctx.Done():
			// A Pump that is ended from outside comes back.
			last, cancel := context.WithTimeout(context.Background(), registry.Patience)
			defer cancel()
			s.change(last, "paused")
			return
		case <-ticker.C:
			if s.faults.Has(program.Hang) {
				continue
			}
			if err := s.write(ctx); err != nil {
				log.Printf("the state is not written: %v", err)
			}
		}
	}
}

func (s *server) write(ctx context.Context) error {
	s.mutex.Lock()
	now := time.Now().UnixMilli() << 18
	s.node.MaxCommitTS, s.node.UpdateTS = now, now
	value, err := json.Marshal(s.node)
	s.mutex.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, registry.Patience)
	defer cancel()
	_, err = s.client.Put(ctx, prefix+s.node.ID, string(value))
	return err
}

// change gives the node another state, for good.
func (s *server) change(ctx context.Context, state string) {
	s.mutex.Lock()
	s.node.State = state
	s.mutex.Unlock()
	for err := s.write(ctx); err != nil && ctx.Err() == nil; err = s.write(ctx) {
		log.Printf("the state %s is not written: %v", state, err)
		time.Sleep(500 * time.Millisecond)
	}
	log.Printf("this node is %s", state)
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", s.onStatus)
	mux.HandleFunc("PUT /state/{node}/{action}", s.onAction)
	return mux
}

// onStatus tells the state of all nodes.
func (s *server) onStatus(writer http.ResponseWriter, request *http.Request) {
	ctx, cancel := context.WithTimeout(request.Context(), registry.Patience)
	defer cancel()
	nodes, failure := map[string]node{}, ""
	answer, err := s.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		failure = err.Error()
	} else {
		for _, pair := range answer.Kvs {
			var one node
			if json.Unmarshal(pair.Value, &one) == nil {
				nodes[one.ID] = one
			}
		}
	}
	program.Reply(writer, http.StatusOK, map[string]any{
		"standin": program.Notice, "version": s.program.Version, "status": nodes, "ErrMsg": failure,
	})
}

// onAction pauses or closes the node. Failures, too, have the status 200; the code is in the body, as with the real program.
func (s *server) onAction(writer http.ResponseWriter, request *http.Request) {
	say := func(code int, text string) {
		program.Reply(writer, http.StatusOK, map[string]any{"code": code, "message": text})
	}
	steps := map[string][]string{"pause": {"pausing", "paused"}, "close": {"closing", "offline"}}[request.PathValue("action")]
	s.mutex.Lock()
	id, state := s.node.ID, s.node.State
	s.mutex.Unlock()
	switch {
	case request.PathValue("node") != id:
		say(http.StatusBadRequest, fmt.Sprintf("invalid node id %s, this is %s", request.PathValue("node"), id))
	case steps == nil:
		say(http.StatusBadRequest, "the action must be pause or close")
	case state != "online":
		say(http.StatusBadRequest, fmt.Sprintf("this node is %s", state))
	default:
		// Whoever asks twice is told the state, not carried out twice.
		s.mutex.Lock()
		s.node.State = steps[0]
		s.mutex.Unlock()
		say(http.StatusOK, "success")
		go func() {
			for _, step := range steps {
				s.change(context.Background(), step)
			}
			close(s.leave)
		}()
	}
}
