package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"strconv"

	"windlass.dev/lab/tidb-standin/program"
	"windlass.dev/lab/tidb-standin/region"
)

// wantedRegions is how many regions the first one is split into.
func wantedRegions() (int, error) {
	text := program.Setting("STANDIN_REGIONS", "20")
	wanted, err := strconv.Atoi(text)
	if err != nil || wanted < 1 {
		return 0, fmt.Errorf("STANDIN_REGIONS is %q: it must be a number, 1 or more", text)
	}
	return wanted, nil
}

// makeRegions splits the first region, if it is still whole and led here.
func (s *Store) makeRegions(ctx context.Context, wanted int) {
	whole := s.whole()
	if whole == 0 || wanted == 1 {
		return
	}
	var keys [][]byte
	for number := 1; number < wanted; number++ {
		keys = append(keys, fmt.Appendf(nil, "standin-%06d", number))
	}
	_ = persist(ctx, "split the first region", func() error { return s.split(ctx, whole, keys) })
}

// whole is the region that spans everything, as long as it is led here.
func (s *Store) whole() uint64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for id, r := range s.replicas {
		if s.leads(r) && len(r.Region.GetStartKey()) == 0 && len(r.Region.GetEndKey()) == 0 {
			return id
		}
	}
	return 0
}

// split cuts a region at those of the keys that lie inside it. Its peers elsewhere hear of the parts as of regions that arrive.
func (s *Store) split(ctx context.Context, id uint64, keys [][]byte) error {
	s.mutex.Lock()
	r := s.replicas[id]
	if !s.leads(r) {
		s.mutex.Unlock()
		return nil
	}
	before, term := region.Clone(r.Region), r.Term
	s.mutex.Unlock()
	var inside [][]byte
	for _, key := range keys {
		end := before.GetEndKey()
		if bytes.Compare(key, before.GetStartKey()) > 0 && (len(end) == 0 || bytes.Compare(key, end) < 0) {
			inside = append(inside, key)
		}
	}
	if len(inside) == 0 {
		return nil
	}
	ids, err := s.pd.AskSplit(ctx, before, len(inside))
	if err != nil {
		return err
	}
	parts, err := region.Split(before, inside, ids)
	if err != nil {
		return err
	}
	last := len(parts) - 1
	if !s.commit(ctx, before, parts[last]) {
		return errors.New("no majority agrees to the split")
	}
	s.mutex.Lock()
	for _, part := range parts[:last] {
		fresh := &replica{Region: part, Complete: true}
		s.replicas[part.GetId()] = fresh
		s.lead(fresh, term, nil)
	}
	s.mutex.Unlock()
	s.report(id)
	log.Printf("region %d is now %d regions", id, len(parts))
	return s.pd.ReportSplit(ctx, parts)
}
