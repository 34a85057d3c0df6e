package store

import (
	"context"
	"log"
	"time"

	"github.com/pingcap/kvproto/pkg/pdpb"

	"windlass.dev/lab/tidb-standin/pd"
	"windlass.dev/lab/tidb-standin/program"
)

const (
	// all is how often PD hears of every region that is led here; of changes it hears at once.
	all = 3 * time.Second
	// regionSize is what each region is said to hold: little, so that PD lets many move at once.
	regionSize = 10 << 20
	// regionKeys is so many that PD never merges two regions.
	regionKeys = 1_000_000
	// missing is how long a peer must not have answered to be called down.
	missing = 5 * time.Second
)

func (s *Store) cutOff() bool {
	return s.faults.Has(stopHeartbeats) || s.faults.Has(program.Hang)
}

// reportStore tells PD each second that the store lives.
func (s *Store) reportStore(ctx context.Context) {
	var trouble program.Trouble
	for ; ctx.Err() == nil; sleep(ctx, time.Second) {
		if s.cutOff() {
			continue
		}
		now := uint64(time.Now().Unix())
		regions, _ := s.count()
		used := uint64(regions) * regionSize
		err := s.pd.StoreHeartbeat(ctx, &pdpb.StoreStats{
			StoreId:     s.id,
			Capacity:    s.options.capacity,
			Available:   s.options.capacity - min(used, s.options.capacity),
			UsedSize:    used,
			RegionCount: uint32(regions),
			StartTime:   uint32(s.began.Unix()),
			Interval:    &pdpb.TimeInterval{StartTimestamp: now - 1, EndTimestamp: now},
		})
		if ctx.Err() == nil {
			trouble.Note("PD does not hear this store", err)
		}
	}
}

// reportRegions tells PD about the regions that are led here, and carries out what it orders.
func (s *Store) reportRegions(ctx context.Context) {
	var trouble program.Trouble
	for ; ctx.Err() == nil; sleep(ctx, beat) {
		if s.cutOff() {
			continue
		}
		if err := s.stream(ctx); err != nil && ctx.Err() == nil {
			trouble.Note("PD is not told about regions for a moment", err)
			s.pd.Forget()
		}
	}
}

// stream talks with one leader of PD until that fails.
func (s *Store) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client, header, err := s.pd.Leader(ctx)
	if err != nil {
		return err
	}
	stream, err := client.RegionHeartbeat(ctx)
	if err != nil {
		return err
	}
	go func() {
		for {
			order, err := stream.Recv()
			if err != nil {
				cancel(err)
				return
			}
			if err := pd.Failure(order.GetHeader()); err != nil {
				log.Printf("PD has no use for what it was told about a region: %v", err)
				continue
			}
			s.obey(ctx, order)
		}
	}()
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	var last time.Time
	for {
		var due []uint64
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case id := <-s.reports:
			due = []uint64{id}
		case <-ticker.C:
			everything := time.Since(last) >= all
			if everything {
				last = time.Now()
			}
			due = s.due(everything)
		}
		if s.cutOff() {
			return nil
		}
		for _, id := range due {
			if message := s.describe(id); message != nil {
				message.Header = header
				if err := stream.Send(message); err != nil {
					return err
				}
			}
		}
	}
}

// due are the regions that PD should hear of now.
func (s *Store) due(everything bool) []uint64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var due []uint64
	for id, r := range s.replicas {
		if s.leads(r) && (everything || r.urgent) {
			r.urgent = false
			due = append(due, id)
		}
	}
	return due
}

// describe is what PD is told about a region, if it is led here.
func (s *Store) describe(id uint64) *pdpb.RegionHeartbeatRequest {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.replicas[id]
	if !s.leads(r) {
		return nil
	}
	now := time.Now()
	message := &pdpb.RegionHeartbeatRequest{
		Region:          r.Region,
		Term:            r.Term,
		ApproximateSize: regionSize,
		ApproximateKeys: regionKeys,
		Interval:        &pdpb.TimeInterval{StartTimestamp: uint64(now.Unix()) - 1, EndTimestamp: uint64(now.Unix())},
	}
	for _, peer := range r.Region.GetPeers() {
		if peer.GetStoreId() == s.id {
			message.Leader = peer
			continue
		}
		if !r.arrived[peer.GetId()] {
			message.PendingPeers = append(message.PendingPeers, peer)
		}
		if silence := now.Sub(r.answered[peer.GetStoreId()]); silence > missing {
			message.DownPeers = append(message.DownPeers, &pdpb.PeerStats{Peer: peer, DownSeconds: uint64(silence.Seconds())})
		}
	}
	return message
}

func sleep(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}
