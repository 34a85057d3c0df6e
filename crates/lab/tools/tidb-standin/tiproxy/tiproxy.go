// Package tiproxy stands in for TiProxy: it passes connections on to a TiDB that is registered in the etcd of PD, and tells its state.
package tiproxy

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
	clientv3 "go.etcd.io/etcd/client/v3"

	"windlass.dev/lab/tidb-standin/program"
	"windlass.dev/lab/tidb-standin/registry"
)

type server struct {
	program *program.Program
	client  *clientv3.Client

	mutex  sync.Mutex
	config string
}

// Run stands in for TiProxy until it is told to end.
func Run(arguments []string) error {
	p, err := program.Parse("tiproxy", arguments, "config", "advertise-addr")
	if err != nil {
		return err
	}
	p.Announce()
	ctx, cancel := program.UntilTold()
	defer cancel()
	security := program.Security{
		Authority:   p.File("security.cluster-tls.ca"),
		Certificate: p.File("security.cluster-tls.cert"),
		Key:         p.File("security.cluster-tls.key"),
	}
	client, err := registry.Open(program.First(p.File("proxy.pd-addrs"), "127.0.0.1:2379"), security)
	if err != nil {
		return err
	}
	defer client.Close()
	s := &server{program: p, client: client}
	if path := p.Option("config"); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s.config = string(text)
	}
	if err := s.listen(ctx, program.First(p.File("proxy.addr"), "0.0.0.0:6000")); err != nil {
		return err
	}
	// What administrators talk to has a certificate of its own.
	own := program.Security{
		Authority:   p.File("security.server-http-tls.ca"),
		Certificate: p.File("security.server-http-tls.cert"),
		Key:         p.File("security.server-http-tls.key"),
	}
	if err := program.Serve(ctx, program.First(p.File("api.addr"), "0.0.0.0:3080"), own, program.NewFaults(), s.handler()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(writer http.ResponseWriter, _ *http.Request) {
		program.Reply(writer, http.StatusOK, map[string]string{"standin": program.Notice, "version": s.program.Version})
	})
	health := func(writer http.ResponseWriter, _ *http.Request) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		program.Reply(writer, http.StatusOK, map[string]any{
			"standin": program.Notice, "config_checksum": crc32.ChecksumIEEE([]byte(s.config)),
		})
	}
	mux.HandleFunc("GET /api/debug/health", health)
	mux.HandleFunc("GET /debug/health", health)
	mux.HandleFunc("GET /api/admin/config", func(writer http.ResponseWriter, _ *http.Request) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		fmt.Fprint(writer, s.config)
	})
	mux.HandleFunc("PUT /api/admin/config", s.onConfig)
	return mux
}

func (s *server) onConfig(writer http.ResponseWriter, request *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(writer, request.Body, 1<<20))
	if err == nil {
		err = toml.Unmarshal(text, &map[string]any{})
	}
	if err != nil {
		http.Error(writer, fmt.Sprintf("the configuration cannot be read: %v", err), http.StatusInternalServerError)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.config = string(text)
}

func (s *server) listen(ctx context.Context, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen at %s: %w", address, err)
	}
	go func() {
		<-ctx.Done()
		_ = listener.Close()
	}()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go s.pass(ctx, connection)
		}
	}()
	return nil
}

// pass connects a client with a server, until either of them ends.
func (s *server) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	backend, err := s.backend(ctx)
	if err != nil {
		log.Printf("a client is sent away: %v", err)
		return
	}
	server, err := (&net.Dialer{Timeout: registry.Patience}).DialContext(ctx, "tcp", backend)
	if err != nil {
		log.Printf("a client is sent away: %v", err)
		return
	}
	defer server.Close()
	ended := make(chan struct{}, 2)
	relay := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		ended <- struct{}{}
	}
	go relay(server, client)
	go relay(client, server)
	<-ended
}

// backend is one of the servers that are registered.
func (s *server) backend(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, registry.Patience)
	defer cancel()
	const prefix, suffix = "/topology/tidb/", "/ttl"
	answer, err := s.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return "", err
	}
	var servers []string
	for _, pair := range answer.Kvs {
		if name, is := strings.CutSuffix(strings.TrimPrefix(string(pair.Key), prefix), suffix); is {
			servers = append(servers, name)
		}
	}
	if len(servers) == 0 {
		return "", fmt.Errorf("no TiDB is registered")
	}
	return servers[rand.IntN(len(servers))], nil
}
