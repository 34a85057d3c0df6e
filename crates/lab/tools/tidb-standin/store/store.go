// Package store stands in for TiKV and TiFlash towards the real PD: its regions have no content, but they have peers, leaders and
// terms, and really move from store to store when PD orders it.
//
// Each replica of a region knows the region's description. The leader decides changes, once a majority of the voters has heard of
// them; a leader that is silent is replaced by the votes of a majority. It is Raft without a log: the description is all there is to
// agree upon.
package store

import (
	"log"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"

	"windlass.dev/lab/tidb-standin/pd"
	"windlass.dev/lab/tidb-standin/program"
	"windlass.dev/lab/tidb-standin/region"
)

const (
	// beat is how often a leader tells the peers of its regions that it leads.
	beat = 500 * time.Millisecond
	// lease is how long a word from the leader counts: until then nobody votes for another.
	lease = 3 * time.Second

	// refuseOperators leaves undone what PD orders: regions neither leave nor arrive.
	refuseOperators = "refuseOperators"
	// stopHeartbeats cuts the store off from PD, not from other stores.
	stopHeartbeats = "stopHeartbeats"
)

// replica is this store's part in one region.
type replica struct {
	Region *metapb.Region `json:"region"`
	Term   uint64         `json:"term"`
	// Leader is the store whose peer leads in this term; 0 when that is not known.
	Leader uint64 `json:"leader"`
	// Complete says that the region's data has arrived.
	Complete bool `json:"complete"`

	// What follows is not kept on disk.

	// proposed is the change that the leader asks the others to agree to.
	proposed *metapb.Region
	// busy says that an order of PD is being carried out.
	busy bool
	// urgent says that PD should be told soon, so that it repeats its order.
	urgent bool
	// heard is when the leader was last heard of, and seek when to look for another.
	heard, seek time.Time
	// agreed is when a majority last answered this leader, and answered when each store did.
	agreed   time.Time
	answered map[uint64]time.Time
	// arrived are the peers that told this leader that they have the region's data.
	arrived map[uint64]bool
}

// description is the one that others are told.
func (r *replica) description() *metapb.Region {
	if r.proposed != nil {
		return r.proposed
	}
	return r.Region
}

// listen notes a leader's word and begins to wait for the next.
func (r *replica) listen() {
	r.heard = time.Now()
	r.wait(lease)
}

// wait puts off looking for another leader, not by the same time everywhere: else all would look at once.
func (r *replica) wait(least time.Duration) {
	r.seek = time.Now().Add(least + time.Second + rand.N(2*time.Second))
}

// Store is one store.
type Store struct {
	program *program.Program
	options *options
	pd      *pd.Client
	disk    *disk
	client  *http.Client
	faults  *program.Faults
	began   time.Time

	id uint64
	// offered is the region that this store asked PD to make the cluster with, until it is known whether PD did.
	offered *metapb.Region
	// giving and taking limit how many regions leave and arrive in a second.
	giving, taking *pace
	// reports are regions that PD shall hear of at once.
	reports chan uint64

	mutex sync.Mutex
	// held is the region that this store does not give away; 0 is none.
	held      uint64
	replicas  map[uint64]*replica
	released  map[uint64]bool
	addresses map[uint64]string
	lines     map[uint64]*sync.Mutex
}

// save writes all that is kept. The caller holds the mutex.
func (s *Store) save() {
	if err := s.disk.write(&kept{Cluster: s.pd.Cluster(), Store: s.id, Replicas: s.replicas}); err != nil {
		// A store that cannot keep its word must not give it.
		log.Fatalf("cannot write to the data directory: %v", err)
	}
}

// leads says whether this store's peer leads. The caller holds the mutex.
func (s *Store) leads(r *replica) bool {
	return r != nil && r.Leader == s.id
}

// lead makes this store's peer the leader. The caller holds the mutex.
func (s *Store) lead(r *replica, term uint64, arrived map[uint64]bool) {
	now := time.Now()
	r.Term, r.Leader, r.agreed = term, s.id, now
	r.answered, r.arrived = map[uint64]time.Time{}, map[uint64]bool{}
	maps.Copy(r.arrived, arrived)
	for _, peer := range r.Region.GetPeers() {
		r.answered[peer.GetStoreId()] = now
		if peer.GetStoreId() == s.id {
			r.arrived[peer.GetId()] = true
		}
	}
	s.save()
	s.report(r.Region.GetId())
}

// follow makes this store's peer one that does not lead. The caller holds the mutex.
func (s *Store) follow(r *replica, term, leader uint64) {
	if r.Term != term || r.Leader != leader {
		r.Term, r.Leader = term, leader
		s.save()
	}
	r.proposed = nil
	if leader == 0 {
		r.wait(0)
	} else {
		r.listen()
	}
}

// report has PD told about a region at once.
func (s *Store) report(id uint64) {
	select {
	case s.reports <- id:
	default: // PD hears of all regions in a moment anyway.
	}
}

// arrive takes a region in when its turn has come.
func (s *Store) arrive(id, peer uint64) {
	s.taking.pass(func() {
		if s.faults.Has(refuseOperators) || s.faults.Has(program.Hang) {
			time.AfterFunc(beat, func() { s.arrive(id, peer) })
			return
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if r := s.replicas[id]; r != nil && region.OnStore(r.Region, s.id).GetId() == peer {
			r.Complete = true
			s.save()
		}
	})
}

// count tells how many regions are here, and how many of them are led from here.
func (s *Store) count() (regions, leaders int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, r := range s.replicas {
		if s.leads(r) {
			leaders++
		}
	}
	return len(s.replicas), leaders
}
