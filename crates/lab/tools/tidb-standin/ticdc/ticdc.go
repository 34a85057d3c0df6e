// Package ticdc stands in for a TiCDC server. The captures find each other in the etcd of PD, as the real ones do; one of them owns the
// cluster, and shares so many tables out among them. No change is captured, but tables really go from one to another.
package ticdc

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"windlass.dev/lab/tidb-standin/program"
	"windlass.dev/lab/tidb-standin/registry"
)

const (
	// meta is where the real captures register, too.
	meta = "/tidb/cdc/default/__cdc_meta__"
	// tables and draining are the stand-ins' own: which capture has a table, and which captures shall have none.
	tables   = "/windlass-lab/cdc/table/"
	draining = "/windlass-lab/cdc/draining/"
)

// capture is one server, as it registers itself.
type capture struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Version string `json:"version"`
}

type server struct {
	program *program.Program
	client  *clientv3.Client
	owner   *registry.Post
	self    capture
	proxy   forwarder
}

// Run stands in for TiCDC until it is told to end.
func Run(arguments []string) error {
	p, err := program.Parse("cdc", arguments, "config", "pd", "addr", "advertise-addr", "ca", "cert", "key", "data-dir")
	if err != nil {
		return err
	}
	p.Announce()
	ctx, cancel := program.UntilTold()
	defer cancel()
	security := program.Security{Authority: p.Option("ca"), Certificate: p.Option("cert"), Key: p.Option("key")}
	client, err := registry.Open(p.Option("pd"), security)
	if err != nil {
		return err
	}
	defer client.Close()
	plan, err := readPlan()
	if err != nil {
		return err
	}
	listen := program.First(p.Option("addr"), p.File("addr"), "127.0.0.1:8300")
	proxy, err := newForwarder(security)
	if err != nil {
		return err
	}
	s := &server{
		program: p,
		client:  client,
		self: capture{
			ID:      strings.ToLower(rand.Text()),
			Address: program.First(p.Option("advertise-addr"), p.File("advertise-addr"), listen),
			Version: p.Version,
		},
		proxy: proxy,
	}
	owner, gone := registry.Register(ctx, client, meta+"/owner", s.self.ID, s.entries)
	s.owner = owner
	if err := program.Serve(ctx, listen, security, program.NewFaults(), s.handler()); err != nil {
		return err
	}
	go s.govern(ctx, plan)
	log.Printf("capture %s at %s", s.self.ID, s.self.Address)
	<-ctx.Done()
	<-gone
	return nil
}

func (s *server) entries() []registry.Entry {
	value, _ := json.Marshal(s.self)
	return []registry.Entry{{Key: fmt.Sprintf("%s/capture/%s", meta, s.self.ID), Value: string(value)}}
}

// view is the cluster at a moment.
type view struct {
	owner    string
	captures map[string]capture
	tables   map[string]string
	draining map[string]bool
}

func (s *server) look(ctx context.Context) (*view, error) {
	ctx, cancel := context.WithTimeout(ctx, registry.Patience)
	defer cancel()
	now := &view{captures: map[string]capture{}, tables: map[string]string{}, draining: map[string]bool{}}
	var err error
	if now.owner, err = registry.Holder(ctx, s.client, meta+"/owner"); err != nil {
		return nil, err
	}
	read := func(prefix string, each func(name string, value []byte)) {
		if err != nil {
			return
		}
		var answer *clientv3.GetResponse
		if answer, err = s.client.Get(ctx, prefix, clientv3.WithPrefix()); err == nil {
			for _, pair := range answer.Kvs {
				each(strings.TrimPrefix(string(pair.Key), prefix), pair.Value)
			}
		}
	}
	read(meta+"/capture/", func(name string, value []byte) {
		var one capture
		if json.Unmarshal(value, &one) == nil {
			now.captures[name] = one
		}
	})
	read(tables, func(name string, value []byte) { now.tables[name] = string(value) })
	read(draining, func(name string, _ []byte) { now.draining[name] = true })
	return now, err
}

// govern shares tables out while this capture is the owner.
func (s *server) govern(ctx context.Context, plan plan) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !s.owner.Held() {
			continue
		}
		now, err := s.look(ctx)
		if err != nil {
			continue
		}
		due := plan.speed > 0 && time.Since(last) >= time.Duration(float64(time.Second)/plan.speed)
		moves := plan.moves(now, due)
		if len(moves.gentle) > 0 {
			last = time.Now()
		}
		s.apply(ctx, moves)
	}
}

func (s *server) apply(ctx context.Context, moves moves) {
	ctx, cancel := context.WithTimeout(ctx, registry.Patience)
	defer cancel()
	for _, list := range []map[string]string{moves.needed, moves.gentle} {
		for table, to := range list {
			if _, err := s.client.Put(ctx, tables+table, to); err != nil {
				return
			}
			log.Printf("table %s is now at capture %s", table, to)
		}
	}
	for _, name := range moves.forgotten {
		_, _ = s.client.Delete(ctx, draining+name)
	}
}
