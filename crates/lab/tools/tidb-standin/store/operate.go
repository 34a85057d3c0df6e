package store

import (
	"context"
	"log"
	"maps"
	"time"

	"github.com/pingcap/kvproto/pkg/eraftpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"

	"windlass.dev/lab/tidb-standin/program"
	"windlass.dev/lab/tidb-standin/region"
)

// obey carries out PD's order for a region. PD repeats its orders, so one that cannot be carried out now is left to the next time.
func (s *Store) obey(ctx context.Context, order *pdpb.RegionHeartbeatResponse) {
	if s.faults.Has(refuseOperators) || s.faults.Has(program.Hang) {
		return
	}
	id := order.GetRegionId()
	s.mutex.Lock()
	r := s.replicas[id]
	if !s.leads(r) || r.busy || !region.SameEpoch(r.Region.GetRegionEpoch(), order.GetRegionEpoch()) {
		s.mutex.Unlock()
		return
	}
	r.busy = true
	s.mutex.Unlock()
	go func() {
		defer func() {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			r.busy = false
		}()
		switch {
		case order.GetTransferLeader() != nil:
			s.transfer(ctx, id, append(order.GetTransferLeader().GetPeers(), order.GetTransferLeader().GetPeer()))
		case order.GetChangePeerV2() != nil:
			s.change(ctx, id, order.GetChangePeerV2().GetChanges())
		case order.GetChangePeer() != nil:
			s.change(ctx, id, []*pdpb.ChangePeer{order.GetChangePeer()})
		case order.GetSplitRegion() != nil && order.GetSplitRegion().GetPolicy() == pdpb.CheckPolicy_USEKEY:
			if err := s.split(ctx, id, order.GetSplitRegion().GetKeys()); err != nil {
				log.Printf("region %d is not split: %v", id, err)
			}
		default:
			log.Printf("region %d: PD's order is none that a stand-in knows: %v", id, order)
		}
	}()
}

// transfer hands the lead to the first of the candidates that can take it.
func (s *Store) transfer(ctx context.Context, id uint64, candidates []*metapb.Peer) {
	for _, candidate := range candidates {
		s.mutex.Lock()
		r := s.replicas[id]
		if !s.leads(r) {
			s.mutex.Unlock()
			return
		}
		there := region.OnStore(r.Region, candidate.GetStoreId())
		if candidate.GetStoreId() == s.id || !region.MayLead(there) || !r.arrived[there.GetId()] {
			s.mutex.Unlock()
			continue
		}
		question := leading{Region: region.Clone(r.Region), Term: r.Term + 1, Arrived: maps.Clone(r.arrived)}
		s.mutex.Unlock()
		var taken answer
		if err := s.ask(ctx, candidate.GetStoreId(), "lead", question, &taken); err != nil || !taken.Granted {
			continue
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if r := s.replicas[id]; r != nil && r.Term <= question.Term {
			s.follow(r, question.Term, candidate.GetStoreId())
		}
		return
	}
}

// change gives the region the peers that PD wants.
func (s *Store) change(ctx context.Context, id uint64, changes []*pdpb.ChangePeer) {
	s.mutex.Lock()
	r := s.replicas[id]
	if !s.leads(r) {
		s.mutex.Unlock()
		return
	}
	before := region.Clone(r.Region)
	s.mutex.Unlock()
	after, err := region.Change(before, changes)
	if err != nil {
		log.Printf("PD's order is not carried out: %v", err)
		return
	}
	if !region.Votes(region.OnStore(after, s.id)) {
		log.Printf("region %d: PD's order is not carried out: its leader would have no say any more", id)
		return
	}
	leaving := removed(before, changes)
	for _, peer := range leaving {
		if !s.mayGo(ctx, id, peer) {
			s.mutex.Lock()
			r.urgent = true
			s.mutex.Unlock()
			return
		}
	}
	if !s.commit(ctx, before, after) {
		log.Printf("region %d: no majority agrees to PD's order", id)
		return
	}
	s.report(id)
	for _, peer := range leaving {
		var done answer
		// A store that does not hear it finds out by itself, later.
		_ = s.ask(ctx, peer.GetStoreId(), "destroy", parting{Region: id, Peer: peer.GetId(), Epoch: after.GetRegionEpoch()}, &done)
	}
}

// removed are the peers that changes take away.
func removed(before *metapb.Region, changes []*pdpb.ChangePeer) []*metapb.Peer {
	var peers []*metapb.Peer
	for _, change := range changes {
		if change.GetChangeType() == eraftpb.ConfChangeType_RemoveNode {
			peers = append(peers, region.OnStore(before, change.GetPeer().GetStoreId()))
		}
	}
	return peers
}

// mayGo asks a store to let a peer go. One that cannot be reached is not waited for.
func (s *Store) mayGo(ctx context.Context, id uint64, peer *metapb.Peer) bool {
	var granted answer
	err := s.ask(ctx, peer.GetStoreId(), "release", parting{Region: id, Peer: peer.GetId()}, &granted)
	return err != nil || granted.Granted
}

// commit makes a change valid once majorities before and after it agree.
func (s *Store) commit(ctx context.Context, before, after *metapb.Region) bool {
	id := before.GetId()
	s.mutex.Lock()
	r := s.replicas[id]
	if !s.leads(r) || !region.SameEpoch(r.Region.GetRegionEpoch(), before.GetRegionEpoch()) {
		s.mutex.Unlock()
		return false
	}
	r.proposed = after
	term := r.Term
	// Nobody is counted as unreachable before he could be reached.
	for _, peer := range after.GetPeers() {
		if _, known := r.answered[peer.GetStoreId()]; !known {
			r.answered[peer.GetStoreId()] = time.Now()
		}
	}
	s.mutex.Unlock()

	everybody := region.Clone(after)
	for _, peer := range before.GetPeers() {
		if region.OnStore(after, peer.GetStoreId()) == nil {
			everybody.Peers = append(everybody.Peers, peer)
		}
	}
	agreed := s.majority(ctx, everybody, func(ctx context.Context, store uint64) bool {
		return s.tell(ctx, store, id)[id]
	}, before, after)

	s.mutex.Lock()
	defer s.mutex.Unlock()
	if r.proposed != after || !s.leads(r) || r.Term != term {
		return false
	}
	r.proposed = nil
	if agreed {
		r.Region = after
		s.save()
	}
	return agreed
}
