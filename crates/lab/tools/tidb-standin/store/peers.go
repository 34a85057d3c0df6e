package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gogo/protobuf/proto"
	"github.com/pingcap/kvproto/pkg/metapb"

	"windlass.dev/lab/tidb-standin/program"
	"windlass.dev/lab/tidb-standin/region"
)

// What stores say to each other, at the address of their peers. Where TiKV has a protocol of its own, this is JSON: nobody but another
// stand-in listens.
type (
	// appending is what a leader tells: the regions that it leads, as they are.
	appending struct {
		From    uint64       `json:"from"`
		Regions []appendItem `json:"regions"`
	}
	appendItem struct {
		Region *metapb.Region `json:"region"`
		Term   uint64         `json:"term"`
	}
	appended struct {
		Refused  bool   `json:"refused"`
		Term     uint64 `json:"term"`
		Complete bool   `json:"complete"`
	}
	// voting asks for a vote; one that is not real only asks whether it would be given.
	voting struct {
		Region uint64              `json:"region"`
		Epoch  *metapb.RegionEpoch `json:"epoch"`
		Term   uint64              `json:"term"`
		Real   bool                `json:"real"`
	}
	// leading hands a region's lead over.
	leading struct {
		Region  *metapb.Region  `json:"region"`
		Term    uint64          `json:"term"`
		Arrived map[uint64]bool `json:"arrived"`
	}
	// parting concerns a peer that is to leave its store.
	parting struct {
		Region uint64              `json:"region"`
		Peer   uint64              `json:"peer"`
		Epoch  *metapb.RegionEpoch `json:"epoch"`
	}
	answer struct {
		Granted bool `json:"granted"`
	}
)

func (s *Store) servePeers() http.Handler {
	mux := http.NewServeMux()
	handle(mux, "append", s.onAppend)
	handle(mux, "vote", s.onVote)
	handle(mux, "lead", s.onLead)
	handle(mux, "release", s.onRelease)
	handle(mux, "destroy", s.onDestroy)
	return mux
}

func handle[Q, A any](mux *http.ServeMux, name string, act func(Q) A) {
	mux.HandleFunc("POST /standin/peer/"+name, func(writer http.ResponseWriter, request *http.Request) {
		var question Q
		if program.Read(writer, request, &question) {
			program.Reply(writer, http.StatusOK, act(question))
		}
	})
}

// ask says something to another store.
func (s *Store) ask(ctx context.Context, store uint64, name string, question, answer any) error {
	address, err := s.address(ctx, store)
	if err != nil {
		return err
	}
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("%s://%s/standin/peer/%s", s.options.security.Scheme(), address, name)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := s.client.Do(request)
	if err != nil {
		// It may have moved.
		s.mutex.Lock()
		delete(s.addresses, store)
		s.mutex.Unlock()
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("store %d answers %s", store, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// address is where PD says that a store's peers are.
func (s *Store) address(ctx context.Context, store uint64) (string, error) {
	s.mutex.Lock()
	address, known := s.addresses[store]
	s.mutex.Unlock()
	if known {
		return address, nil
	}
	if s.faults.Has(stopHeartbeats) {
		return "", fmt.Errorf("where store %d is cannot be asked: this store is cut off from PD", store)
	}
	meta, err := s.pd.Store(ctx, store)
	if err != nil {
		return "", err
	}
	address = program.First(meta.GetPeerAddress(), meta.GetAddress())
	s.mutex.Lock()
	s.addresses[store] = address
	s.mutex.Unlock()
	return address, nil
}

// line keeps what is said to one store in order.
func (s *Store) line(store uint64) *sync.Mutex {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.lines[store] == nil {
		s.lines[store] = &sync.Mutex{}
	}
	return s.lines[store]
}

// tell tells another store about the regions that are led here and have a peer there, or about one of them. It returns those whose
// peer there agrees.
func (s *Store) tell(ctx context.Context, store uint64, only uint64) map[uint64]bool {
	line := s.line(store)
	line.Lock()
	defer line.Unlock()
	message := appending{From: s.id}
	s.mutex.Lock()
	for id, r := range s.replicas {
		concerned := region.OnStore(r.description(), store) != nil || (only != 0 && region.OnStore(r.Region, store) != nil)
		if s.leads(r) && concerned && (only == 0 || only == id) {
			message.Regions = append(message.Regions, appendItem{Region: region.Clone(r.description()), Term: r.Term})
		}
	}
	s.mutex.Unlock()
	agree := map[uint64]bool{}
	if len(message.Regions) == 0 {
		return agree
	}
	answers := map[uint64]appended{}
	if err := s.ask(ctx, store, "append", message, &answers); err != nil {
		return agree
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, item := range message.Regions {
		id := item.Region.GetId()
		answer, answered := answers[id]
		r := s.replicas[id]
		if !answered || !s.leads(r) || r.Term != item.Term {
			continue
		}
		if answer.Refused {
			s.follow(r, max(answer.Term, r.Term), 0)
			continue
		}
		agree[id] = true
		r.answered[store] = time.Now()
		if there := region.OnStore(item.Region, store); there != nil && r.arrived[there.GetId()] != answer.Complete {
			r.arrived[there.GetId()] = answer.Complete
			s.report(id)
		}
	}
	return agree
}

// onAppend hears a leader.
func (s *Store) onAppend(message appending) map[uint64]appended {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	answers := map[uint64]appended{}
	changed := false
	for _, item := range message.Regions {
		id := item.Region.GetId()
		r := s.replicas[id]
		if r != nil && item.Term < r.Term {
			answers[id] = appended{Refused: true, Term: r.Term}
			continue
		}
		here := region.OnStore(item.Region, s.id)
		if here == nil {
			// It is about to leave; that it goes is said apart.
			answers[id] = appended{Complete: true}
			continue
		}
		if r == nil || region.OnStore(r.Region, s.id).GetId() != here.GetId() {
			r = &replica{}
			s.replicas[id] = r
			s.arrive(id, here.GetId())
		}
		if r.Term != item.Term || r.Leader != message.From || !proto.Equal(r.Region, item.Region) {
			r.Region, r.Term, r.Leader, r.proposed = item.Region, item.Term, message.From, nil
			changed = true
		}
		r.listen()
		answers[id] = appended{Complete: r.Complete}
	}
	if changed {
		s.save()
	}
	return answers
}

// onRelease lets a peer go, when its turn has come. The leader asks again until then.
func (s *Store) onRelease(who parting) answer {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.replicas[who.Region]
	if r == nil || region.OnStore(r.Region, s.id).GetId() != who.Peer {
		return answer{Granted: true}
	}
	if s.faults.Has(refuseOperators) || s.held == who.Region {
		return answer{}
	}
	granted, asked := s.released[who.Peer]
	if !asked {
		s.released[who.Peer] = false
		s.giving.pass(func() {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			s.released[who.Peer] = true
		})
	}
	return answer{Granted: granted}
}

// onDestroy removes a peer that is no part of its region any more.
func (s *Store) onDestroy(who parting) answer {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.destroy(who.Region, who.Peer, who.Epoch)
	return answer{Granted: true}
}

// destroy removes this store's peer unless it is another, or newer. The caller holds the mutex.
func (s *Store) destroy(id, peer uint64, epoch *metapb.RegionEpoch) {
	r := s.replicas[id]
	if r != nil && region.OnStore(r.Region, s.id).GetId() == peer && !region.IsOlder(epoch, r.Region.GetRegionEpoch()) {
		delete(s.replicas, id)
		delete(s.released, peer)
		s.save()
	}
}
