// Package tidb stands in for a TiDB server: it is there once PD has a cluster with a store, tells its state, and speaks of MySQL's
// protocol only the greeting and a refusal.
package tidb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"windlass.dev/lab/tidb-standin/pd"
	"windlass.dev/lab/tidb-standin/program"
	"windlass.dev/lab/tidb-standin/registry"
)

// ownerPost is where TiDB servers decide who of them changes schemas.
const ownerPost = "/tidb/ddl/fg/owner"

// globalState is where they note that the cluster is being upgraded.
const globalState = "/tidb/server/global_state"

type server struct {
	program *program.Program
	faults  *program.Faults
	client  *clientv3.Client
	owner   *registry.Post
	name    string
	address string
	port    string
	status  string
	began   time.Time

	connections atomic.Int64

	mutex  sync.Mutex
	labels map[string]string
}

// Run stands in for TiDB until it is told to end.
func Run(arguments []string) error {
	p, err := program.Parse("tidb-server", arguments, "config",
		"path", "advertise-address", "host", "P", "status", "status-host", "store")
	if err != nil {
		return err
	}
	p.Announce()
	ctx, cancel := program.UntilTold()
	defer cancel()
	paths := program.First(p.Option("path"), p.File("path"))
	security := program.Security{
		Authority:   p.File("security.cluster-ssl-ca"),
		Certificate: p.File("security.cluster-ssl-cert"),
		Key:         p.File("security.cluster-ssl-key"),
	}
	if err := waitForCluster(ctx, paths, security); err != nil {
		return err
	}
	client, err := registry.Open(paths, security)
	if err != nil {
		return err
	}
	defer client.Close()
	host := program.First(p.Option("host"), p.File("host"), "0.0.0.0")
	s := &server{
		program: p,
		faults:  program.NewFaults(),
		client:  client,
		address: program.First(p.Option("advertise-address"), p.File("advertise-address"), host),
		port:    program.First(p.Option("P"), p.File("port"), "4000"),
		status:  program.First(p.Option("status"), p.File("status.status-port"), "10080"),
		began:   time.Now(),
		labels:  p.Table("labels"),
	}
	s.name = fmt.Sprintf("%s:%s", s.address, s.port)
	owner, gone := registry.Register(ctx, client, ownerPost, s.name, s.entries)
	s.owner = owner
	if err := s.listen(ctx, net.JoinHostPort(host, s.port)); err != nil {
		return err
	}
	statusHost := program.First(p.Option("status-host"), p.File("status.status-host"), host)
	if err := program.Serve(ctx, net.JoinHostPort(statusHost, s.status), security, s.faults, s.handler()); err != nil {
		return err
	}
	log.Printf("serving at %s", s.name)
	<-ctx.Done()
	<-gone
	return nil
}

// waitForCluster ends when there is a store: without one, the real program has nowhere to read its tables from.
func waitForCluster(ctx context.Context, paths string, security program.Security) error {
	cluster, err := pd.New(paths, security)
	if err != nil {
		return err
	}
	for trouble := (program.Trouble{}); ; {
		if err = hasStore(ctx, cluster); err == nil {
			return nil
		}
		trouble.Note("waiting for the cluster", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func hasStore(ctx context.Context, cluster *pd.Client) error {
	stores, err := cluster.Stores(ctx)
	if err != nil {
		return err
	}
	for _, store := range stores {
		if store.GetState() == metapb.StoreState_Up {
			return nil
		}
	}
	return errors.New("no store is up")
}

// entries are where the real program registers, so that others find it.
func (s *server) entries() []registry.Entry {
	info, _ := json.Marshal(map[string]any{
		"version":         s.version(),
		"git_hash":        "stand-in",
		"status_port":     s.status,
		"deploy_path":     "/",
		"start_timestamp": s.began.Unix(),
		"labels":          s.allLabels(),
	})
	return []registry.Entry{
		{Key: fmt.Sprintf("/topology/tidb/%s/info", s.name), Value: string(info)},
		{Key: fmt.Sprintf("/topology/tidb/%s/ttl", s.name), Value: fmt.Sprint(time.Now().UnixNano())},
	}
}

func (s *server) version() string {
	return "8.0.11-TiDB-" + s.program.Version
}

func (s *server) allLabels() map[string]string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return maps.Clone(s.labels)
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(writer http.ResponseWriter, _ *http.Request) {
		program.Reply(writer, http.StatusOK, map[string]any{
			"standin":     program.Notice,
			"connections": s.connections.Load(),
			"version":     s.version(),
			"git_hash":    "stand-in",
		})
	})
	// The real program does not look at the method.
	mux.HandleFunc("/info", s.onInfo)
	mux.HandleFunc("POST /ddl/owner/resign", s.onResign)
	mux.HandleFunc("POST /labels", s.onLabels)
	mux.HandleFunc("POST /upgrade/{step}", s.onUpgrade)
	return mux
}

func (s *server) onInfo(writer http.ResponseWriter, _ *http.Request) {
	program.Reply(writer, http.StatusOK, map[string]any{
		"standin":         program.Notice,
		"is_owner":        s.owner.Held(),
		"ddl_id":          s.name,
		"version":         s.version(),
		"git_hash":        "stand-in",
		"ip":              s.address,
		"listening_port":  s.port,
		"status_port":     s.status,
		"start_timestamp": s.began.Unix(),
		"labels":          s.allLabels(),
	})
}

func (s *server) onResign(writer http.ResponseWriter, _ *http.Request) {
	if !s.owner.Held() {
		http.Error(writer, "This node is not a ddl owner, can't be resigned.", http.StatusBadRequest)
		return
	}
	s.owner.Yield()
	program.Reply(writer, http.StatusOK, "success!")
}

func (s *server) onLabels(writer http.ResponseWriter, request *http.Request) {
	labels := map[string]string{}
	if !program.Read(writer, request, &labels) {
		return
	}
	s.mutex.Lock()
	maps.Copy(s.labels, labels)
	s.mutex.Unlock()
	program.Reply(writer, http.StatusOK, s.allLabels())
}

// onUpgrade holds schema changes back while the cluster is upgraded. That concerns all servers, so it is noted where all see it.
func (s *server) onUpgrade(writer http.ResponseWriter, request *http.Request) {
	states := map[string]string{"start": "upgrading", "finish": ""}
	wanted, known := states[request.PathValue("step")]
	if !known {
		http.NotFound(writer, request)
		return
	}
	ctx, cancel := context.WithTimeout(request.Context(), registry.Patience)
	defer cancel()
	current, err := s.client.Get(ctx, globalState)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	value := fmt.Sprintf(`{"state":%q}`, wanted)
	if before := `{"state":""}`; (len(current.Kvs) == 0 && value == before) || (len(current.Kvs) > 0 && string(current.Kvs[0].Value) == value) {
		program.Reply(writer, http.StatusOK, "It's a duplicated operation and the cluster is already in that state.")
		return
	}
	if _, err := s.client.Put(ctx, globalState, value); err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	program.Reply(writer, http.StatusOK, "success!")
}
