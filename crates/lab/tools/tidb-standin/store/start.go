package store

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"

	"windlass.dev/lab/tidb-standin/pd"
	"windlass.dev/lab/tidb-standin/program"
	"windlass.dev/lab/tidb-standin/region"
)

// RunTiKV stands in for TiKV until it is told to end.
func RunTiKV(arguments []string) error {
	p, options, err := tikvOptions(arguments)
	if err != nil {
		return err
	}
	return run(p, options)
}

// RunTiFlash stands in for TiFlash until it is told to end.
func RunTiFlash(arguments []string) error {
	p, options, err := tiflashOptions(arguments)
	if err != nil {
		return err
	}
	return run(p, options)
}

func run(p *program.Program, options *options) error {
	p.Announce()
	ctx, cancel := program.UntilTold()
	defer cancel()
	regions, err := wantedRegions()
	if err != nil {
		return err
	}
	s, err := open(p, options)
	if err != nil {
		return err
	}
	if err := s.identify(ctx); err != nil {
		return err
	}
	if err := s.join(ctx); err != nil {
		return err
	}
	if err := s.serve(ctx); err != nil {
		return err
	}
	go s.keepTime(ctx)
	go s.reportStore(ctx)
	go s.reportRegions(ctx)
	go s.makeRegions(ctx, regions)
	<-ctx.Done()
	log.Print("told to end")
	return nil
}

func open(p *program.Program, options *options) (*Store, error) {
	rate, err := defaultRate()
	if err != nil {
		return nil, err
	}
	cluster, err := pd.New(options.pd, options.security)
	if err != nil {
		return nil, err
	}
	disk, err := openDisk(options.data)
	if err != nil {
		return nil, err
	}
	client, err := program.NewHTTPClient(options.security, 2*time.Second)
	if err != nil {
		return nil, err
	}
	return &Store{
		program:   p,
		options:   options,
		pd:        cluster,
		disk:      disk,
		client:    client,
		faults:    program.NewFaults(refuseOperators, stopHeartbeats),
		began:     time.Now(),
		giving:    newPace(rate),
		taking:    newPace(rate),
		reports:   make(chan uint64, 4096),
		replicas:  map[uint64]*replica{},
		released:  map[uint64]bool{},
		addresses: map[uint64]string{},
		lines:     map[uint64]*sync.Mutex{},
	}, nil
}

// persist repeats something until PD answers, or the process is told to end.
func persist(ctx context.Context, what string, act func() error) error {
	var trouble program.Trouble
	for {
		err := act()
		if err == nil || ctx.Err() != nil {
			return err
		}
		trouble.Note("waiting to "+what, err)
		sleep(ctx, 500*time.Millisecond)
	}
}

// identify finds out who this store is: what its data directory says, or somebody new.
func (s *Store) identify(ctx context.Context) error {
	state, err := s.disk.read()
	if err != nil {
		return err
	}
	err = persist(ctx, "hear from PD", func() error {
		_, _, err := s.pd.Leader(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if state != nil {
		if state.Cluster != s.pd.Cluster() {
			return fmt.Errorf("this data belongs to cluster %d, but PD is that of cluster %d", state.Cluster, s.pd.Cluster())
		}
		s.id, s.offered = state.Store, state.First
		s.recover(state.Replicas)
		log.Printf("this is store %d, with %d regions", s.id, len(s.replicas))
		return nil
	}
	err = persist(ctx, "get an id", func() error {
		s.id, err = s.pd.AllocateID(ctx)
		return err
	})
	if err != nil {
		return err
	}
	log.Printf("this is the new store %d", s.id)
	return s.disk.write(&kept{Cluster: s.pd.Cluster(), Store: s.id})
}

// recover takes up what was here before. Nobody knows who leads now.
func (s *Store) recover(replicas map[uint64]*replica) {
	for id, r := range replicas {
		r.Leader = 0
		r.listen()
		s.replicas[id] = r
		if !r.Complete {
			s.arrive(id, region.OnStore(r.Region, s.id).GetId())
		}
	}
}

func (s *Store) meta() *metapb.Store {
	meta := s.options.meta
	meta.Id = s.id
	meta.Version = strings.TrimPrefix(s.program.Version, "v")
	meta.GitHash = "stand-in"
	meta.StartTimestamp = s.began.Unix()
	meta.DeployPath = "/"
	return &meta
}

// join makes the store part of the cluster, and the cluster if there is none yet.
func (s *Store) join(ctx context.Context) error {
	if err := persist(ctx, "see a cluster", func() error { return s.bootstrap(ctx) }); err != nil {
		return err
	}
	var trouble program.Trouble
	for {
		err := s.pd.PutStore(ctx, s.meta())
		if err == nil {
			log.Printf("PD has store %d at %s", s.id, s.meta().GetAddress())
			return nil
		}
		// What PD refuses, it refuses again: the real program ends, too.
		if ctx.Err() != nil || errors.Is(err, pd.ErrTombstone) || strings.HasPrefix(err.Error(), "PD refuses") {
			return fmt.Errorf("store %d cannot join: %w", s.id, err)
		}
		trouble.Note("waiting to join", err)
		sleep(ctx, time.Second)
	}
}

// bootstrap makes the cluster if there is none. The offer is kept before it is made: an end in between must not lose the region that
// PD was given.
func (s *Store) bootstrap(ctx context.Context) error {
	bootstrapped, err := s.pd.Bootstrapped(ctx)
	if err != nil {
		return err
	}
	if !bootstrapped {
		if s.options.engine != "" {
			return errors.New("no store that can vote has made a cluster yet")
		}
		if err := s.offer(ctx); err != nil {
			return err
		}
		if err := s.pd.Bootstrap(ctx, s.meta(), s.offered); err != nil && !errors.Is(err, pd.ErrBootstrapped) {
			return err
		}
	}
	if s.offered == nil {
		return nil
	}
	taken, err := s.pd.RegionOf(ctx, nil)
	if err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	// Several may have offered one; PD has taken the first.
	if taken.GetId() == s.offered.GetId() {
		r := &replica{Region: s.offered, Complete: true}
		s.replicas[taken.GetId()] = r
		s.lead(r, 6, nil)
		log.Printf("store %d made the cluster with region %d", s.id, taken.GetId())
	}
	s.offered = nil
	s.save()
	return nil
}

func (s *Store) offer(ctx context.Context) error {
	if s.offered != nil {
		return nil
	}
	id, err := s.pd.AllocateID(ctx)
	if err != nil {
		return err
	}
	peer, err := s.pd.AllocateID(ctx)
	if err != nil {
		return err
	}
	offered := &metapb.Region{
		Id:          id,
		RegionEpoch: &metapb.RegionEpoch{Version: 1, ConfVer: 1},
		Peers:       []*metapb.Peer{{Id: peer, StoreId: s.id}},
	}
	if err := s.disk.write(&kept{Cluster: s.pd.Cluster(), Store: s.id, First: offered}); err != nil {
		return err
	}
	s.offered = offered
	return nil
}

// serve answers other stores, and people.
func (s *Store) serve(ctx context.Context) error {
	if err := program.Serve(ctx, s.options.listen, s.options.security, s.faults, s.servePeers()); err != nil {
		return err
	}
	if err := program.Serve(ctx, s.options.status, s.options.security, s.faults, s.serveStatus()); err != nil {
		return err
	}
	if s.options.engine == "" {
		return nil
	}
	notice := http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		http.Error(writer, "this is "+program.Notice, http.StatusNotImplemented)
	})
	return program.Serve(ctx, s.options.engine, s.options.security, s.faults, notice)
}
