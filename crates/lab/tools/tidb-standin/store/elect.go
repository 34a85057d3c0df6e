package store

import (
	"context"
	"log"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"

	"windlass.dev/lab/tidb-standin/program"
	"windlass.dev/lab/tidb-standin/region"
)

// keepTime tells the peers of the regions led here that they are led, gives up a lead that a majority does not answer, and looks for
// a leader where none is heard.
func (s *Store) keepTime(ctx context.Context) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if s.faults.Has(program.Hang) {
			continue
		}
		for _, store := range s.neighbours() {
			go s.tell(ctx, store, 0)
		}
		for _, id := range s.silent() {
			go s.seek(ctx, id)
		}
	}
}

// neighbours are the stores with peers of regions that are led here.
func (s *Store) neighbours() []uint64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	seen := map[uint64]bool{s.id: true}
	var stores []uint64
	for _, r := range s.replicas {
		if !s.leads(r) {
			continue
		}
		for _, peer := range r.description().GetPeers() {
			if !seen[peer.GetStoreId()] {
				seen[peer.GetStoreId()] = true
				stores = append(stores, peer.GetStoreId())
			}
		}
	}
	return stores
}

// silent are the regions whose leader is not heard. A leader that is not answered becomes one of them.
func (s *Store) silent() []uint64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := time.Now()
	var silent []uint64
	for id, r := range s.replicas {
		if s.leads(r) {
			recently := func(store uint64) bool { return store == s.id || now.Sub(r.answered[store]) < lease }
			if region.HasMajority(r.Region, recently) {
				r.agreed = now
			} else if now.Sub(r.agreed) > lease {
				log.Printf("region %d: no majority answers, so this store leads it no more", id)
				s.follow(r, r.Term, 0)
			}
			continue
		}
		if now.After(r.seek) {
			r.wait(0)
			silent = append(silent, id)
		}
	}
	return silent
}

// seek asks whether this store's peer is still part of the region, and for votes to lead it.
func (s *Store) seek(ctx context.Context, id uint64) {
	s.mutex.Lock()
	r := s.replicas[id]
	if r == nil || s.leads(r) {
		s.mutex.Unlock()
		return
	}
	here := region.OnStore(r.Region, s.id)
	mayLead := r.Complete && region.Votes(here)
	s.mutex.Unlock()
	if s.gone(ctx, id, here.GetId()) || !mayLead {
		return
	}
	// First whether it would have the votes: a peer that only is out of reach must not count terms up.
	if _, would := s.campaign(ctx, id, false); !would {
		return
	}
	if term, elected := s.campaign(ctx, id, true); elected {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if r := s.replicas[id]; r != nil && r.Term == term && r.Leader == 0 {
			s.lead(r, term, nil)
			log.Printf("region %d: this store was elected to lead it", id)
		}
	}
}

// gone asks PD whether this store's peer was removed while it heard nothing, and removes it if so.
func (s *Store) gone(ctx context.Context, id, peer uint64) bool {
	if s.faults.Has(stopHeartbeats) {
		return false
	}
	known, err := s.pd.Region(ctx, id)
	if err != nil || known == nil {
		return false
	}
	if here := region.OnStore(known, s.id); here.GetId() == peer {
		return false
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.replicas[id]
	if r == nil || !region.IsOlder(r.Region.GetRegionEpoch(), known.GetRegionEpoch()) {
		return r == nil
	}
	log.Printf("region %d: PD says that it has no peer here any more", id)
	s.destroy(id, peer, known.GetRegionEpoch())
	return true
}

// campaign asks the other voters; it returns the term, and whether a majority agrees.
func (s *Store) campaign(ctx context.Context, id uint64, real bool) (uint64, bool) {
	s.mutex.Lock()
	r := s.replicas[id]
	if r == nil || s.leads(r) {
		s.mutex.Unlock()
		return 0, false
	}
	term := r.Term + 1
	meta := region.Clone(r.Region)
	if real {
		s.follow(r, term, 0)
	}
	s.mutex.Unlock()
	question := voting{Region: id, Epoch: meta.GetRegionEpoch(), Term: term, Real: real}
	return term, s.majority(ctx, meta, func(ctx context.Context, store uint64) bool {
		var vote answer
		return s.ask(ctx, store, "vote", question, &vote) == nil && vote.Granted
	}, meta)
}

// majority asks all other stores of a region at once, and returns as soon as a majority of each description agrees, or none can.
func (s *Store) majority(ctx context.Context, meta *metapb.Region, ask func(context.Context, uint64) bool, each ...*metapb.Region) bool {
	type said struct {
		store uint64
		yes   bool
	}
	answers := make(chan said, len(meta.GetPeers()))
	asked := 0
	for _, peer := range meta.GetPeers() {
		if store := peer.GetStoreId(); store != s.id {
			asked++
			go func() { answers <- said{store, ask(ctx, store)} }()
		}
	}
	agree := map[uint64]bool{s.id: true}
	reached := func() bool {
		for _, one := range each {
			if !region.HasMajority(one, func(store uint64) bool { return agree[store] }) {
				return false
			}
		}
		return true
	}
	for ; !reached(); asked-- {
		if asked == 0 {
			return false
		}
		answer := <-answers
		agree[answer.store] = answer.yes
	}
	return true
}

// onVote gives a vote, once in a term, and not while the leader is heard.
func (s *Store) onVote(question voting) answer {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.replicas[question.Region]
	if r == nil || !r.Complete || s.leads(r) || question.Term <= r.Term || time.Since(r.heard) < lease ||
		region.IsOlder(question.Epoch, r.Region.GetRegionEpoch()) {
		return answer{}
	}
	if question.Real {
		s.follow(r, question.Term, 0)
	}
	return answer{Granted: true}
}

// onLead takes a region's lead over from the leader.
func (s *Store) onLead(wanted leading) answer {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.replicas[wanted.Region.GetId()]
	if r == nil || !r.Complete || wanted.Term <= r.Term || s.faults.Has(refuseOperators) ||
		!region.SameEpoch(r.Region.GetRegionEpoch(), wanted.Region.GetRegionEpoch()) || !region.MayLead(region.OnStore(r.Region, s.id)) {
		return answer{}
	}
	s.lead(r, wanted.Term, wanted.Arrived)
	return answer{Granted: true}
}
