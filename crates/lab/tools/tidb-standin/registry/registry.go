// Package registry is what the stateless programs of a cluster share: the etcd inside PD, at PD's own address.
package registry

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"windlass.dev/lab/tidb-standin/pd"
	"windlass.dev/lab/tidb-standin/program"
)

// lifetime is how many seconds an entry outlives the program that made it, when that ends without a word.
const lifetime = 10

// Patience is how long one request may take.
const Patience = 3 * time.Second

// Open is a client of the etcd inside PD.
func Open(addresses string, security program.Security) (*clientv3.Client, error) {
	config, err := security.Config()
	if err != nil {
		return nil, err
	}
	var endpoints []string
	for _, endpoint := range pd.Endpoints(addresses) {
		endpoints = append(endpoints, fmt.Sprintf("%s://%s", security.Scheme(), endpoint))
	}
	return clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: config, DialTimeout: Patience, Logger: zap.NewNop()})
}

// Entry is something that is registered as long as the program lives.
type Entry struct {
	Key, Value string
}

// Post is held by one of those who want it at a time.
type Post struct {
	mutex    sync.Mutex
	election *concurrency.Election
	yield    chan struct{}
}

// Held says whether this program holds the post.
func (p *Post) Held() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.election != nil
}

// Yield gives the post up for somebody else; without effect when it is not held.
func (p *Post) Yield() {
	select {
	case p.yield <- struct{}{}:
	default:
	}
}

// Register keeps entries present, and stands for a post, until the context ends; then both are gone at once. The returned channel is
// closed when that is done.
func Register(ctx context.Context, client *clientv3.Client, prefix, name string, entries func() []Entry) (*Post, <-chan struct{}) {
	post, done := &Post{yield: make(chan struct{}, 1)}, make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := post.serve(ctx, client, prefix, name, entries); err != nil && ctx.Err() == nil {
				log.Printf("the registration is lost for a moment: %v", err)
				pause(ctx, time.Second)
			}
		}
	}()
	return post, done
}

// serve is one session: from a lease to its loss.
func (p *Post) serve(ctx context.Context, client *clientv3.Client, prefix, name string, entries func() []Entry) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(lifetime))
	if err != nil {
		return err
	}
	defer session.Close()
	living, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		<-session.Done()
		cancel()
	}()
	if err := p.refresh(living, client, session, entries()); err != nil {
		return err
	}
	go func() {
		for ; living.Err() == nil; pause(living, 2*time.Second) {
			_ = p.refresh(living, client, session, entries())
		}
	}()
	for living.Err() == nil {
		election := concurrency.NewElection(session, prefix)
		if err := election.Campaign(living, name); err != nil {
			return err
		}
		p.hold(election)
		select {
		case <-living.Done():
		case <-p.yield:
		}
		p.hold(nil)
		last, stop := context.WithTimeout(context.Background(), Patience)
		err := election.Resign(last)
		stop()
		if err != nil {
			return err
		}
		// Whoever else stands for it gets it.
		pause(living, 2*time.Second)
	}
	return nil
}

func (p *Post) hold(election *concurrency.Election) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.election = election
}

func (p *Post) refresh(ctx context.Context, client *clientv3.Client, session *concurrency.Session, entries []Entry) error {
	for _, entry := range entries {
		limited, cancel := context.WithTimeout(ctx, Patience)
		_, err := client.Put(limited, entry.Key, entry.Value, clientv3.WithLease(session.Lease()))
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// Holder is the name of who holds a post; nothing when nobody does.
func Holder(ctx context.Context, client *clientv3.Client, prefix string) (string, error) {
	answer, err := client.Get(ctx, prefix+"/", clientv3.WithFirstCreate()...)
	if err != nil || len(answer.Kvs) == 0 {
		return "", err
	}
	return string(answer.Kvs[0].Value), nil
}

func pause(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}
