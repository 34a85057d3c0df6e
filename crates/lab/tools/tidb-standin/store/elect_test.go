package store

import (
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"

	"windlass.dev/lab/tidb-standin/pd"
	"windlass.dev/lab/tidb-standin/program"
	"windlass.dev/lab/tidb-standin/region"
)

// second is store 2 with a replica of region 7, whose three peers are on the stores 1 to 3; store 1 leads in term 5.
func second(t *testing.T) (*Store, *replica) {
	disk, err := openDisk(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := pd.New("127.0.0.1:1", program.Security{})
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{
		id: 2, disk: disk, pd: cluster, faults: program.NewFaults(refuseOperators, stopHeartbeats), giving: newPace(1000), taking: newPace(1000),
		reports: make(chan uint64, 8), replicas: map[uint64]*replica{}, released: map[uint64]bool{},
	}
	r := &replica{Region: three(), Term: 5, Leader: 1, Complete: true, heard: time.Now().Add(-time.Minute)}
	s.replicas[7] = r
	return s, r
}

func three() *metapb.Region {
	return &metapb.Region{
		Id:          7,
		RegionEpoch: &metapb.RegionEpoch{Version: 1, ConfVer: 3},
		Peers:       []*metapb.Peer{{Id: 11, StoreId: 1}, {Id: 12, StoreId: 2}, {Id: 13, StoreId: 3}},
	}
}

func TestAVoteIsGivenOnceInATerm(t *testing.T) {
	s, r := second(t)
	question := voting{Region: 7, Epoch: three().RegionEpoch, Term: 6}
	if !s.onVote(question).Granted || r.Term != 5 {
		t.Fatal("a question whether it would vote is not answered, or counts as a vote")
	}
	question.Real = true
	if !s.onVote(question).Granted || r.Term != 6 || r.Leader != 0 {
		t.Fatalf("no vote: %+v", r)
	}
	if s.onVote(question).Granted {
		t.Error("a second vote in the same term")
	}
}

func TestNoVoteIsGiven(t *testing.T) {
	cases := map[string]func(*replica, *voting){
		"while the leader is heard":   func(r *replica, _ *voting) { r.heard = time.Now() },
		"in a term that is over":      func(_ *replica, q *voting) { q.Term = 5 },
		"to who knows less":           func(_ *replica, q *voting) { q.Epoch = &metapb.RegionEpoch{Version: 1, ConfVer: 2} },
		"before the data has arrived": func(r *replica, _ *voting) { r.Complete = false },
		"by the leader itself":        func(r *replica, _ *voting) { r.Leader = 2 },
		"for a region that is not":    func(_ *replica, q *voting) { q.Region = 8 },
	}
	for name, change := range cases {
		s, r := second(t)
		question := voting{Region: 7, Epoch: three().RegionEpoch, Term: 6, Real: true}
		change(r, &question)
		if s.onVote(question).Granted {
			t.Errorf("%s, a vote is given", name)
		}
	}
}

func TestAFollowerHearsOnlyTheLeaderOfTheLastTerm(t *testing.T) {
	s, r := second(t)
	old := s.onAppend(appending{From: 3, Regions: []appendItem{{Region: three(), Term: 4}}})
	if !old[7].Refused || old[7].Term != 5 || r.Leader != 1 {
		t.Fatalf("%+v, %+v", old, r)
	}
	changed := three()
	changed.RegionEpoch.ConfVer = 4
	changed.Peers = append(changed.Peers, &metapb.Peer{Id: 14, StoreId: 4, Role: metapb.PeerRole_Learner})
	heard := s.onAppend(appending{From: 3, Regions: []appendItem{{Region: changed, Term: 6}}})
	if heard[7].Refused || !heard[7].Complete || r.Leader != 3 || r.Term != 6 || len(r.Region.Peers) != 4 {
		t.Fatalf("%+v, %+v", heard, r)
	}
	// What was heard is kept: after a restart it is still known.
	state, err := s.disk.read()
	if err != nil || state.Replicas[7].Term != 6 || len(state.Replicas[7].Region.Peers) != 4 {
		t.Fatalf("%+v, %v", state, err)
	}
}

func TestAPeerArrivesInItsTurnAndGoesOnlyWhenItIsMeant(t *testing.T) {
	s, _ := second(t)
	s.taking.set(0)
	fresh := three()
	fresh.Id = 8
	message := appending{From: 1, Regions: []appendItem{{Region: fresh, Term: 6}}}
	if s.onAppend(message)[8].Complete {
		t.Fatal("it has arrived at once")
	}
	s.taking.set(1000)
	deadline := time.Now().Add(10 * time.Second)
	for !s.onAppend(message)[8].Complete {
		if time.Now().After(deadline) {
			t.Fatal("it never arrives")
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.onDestroy(parting{Region: 8, Peer: 99, Epoch: fresh.RegionEpoch})
	s.onDestroy(parting{Region: 8, Peer: 12, Epoch: &metapb.RegionEpoch{Version: 1, ConfVer: 2}})
	if s.replicas[8] == nil {
		t.Fatal("another peer's end was taken for this one's")
	}
	s.onDestroy(parting{Region: 8, Peer: 12, Epoch: fresh.RegionEpoch})
	if s.replicas[8] != nil {
		t.Fatal("it is still there")
	}
}

func TestTheLeadIsTakenOverInANewTermOnly(t *testing.T) {
	s, r := second(t)
	if s.onLead(leading{Region: three(), Term: 5}).Granted {
		t.Error("in the same term")
	}
	older := three()
	older.RegionEpoch.ConfVer = 2
	if s.onLead(leading{Region: older, Term: 6}).Granted {
		t.Error("with another description")
	}
	if !s.onLead(leading{Region: three(), Term: 6, Arrived: map[uint64]bool{11: true}}).Granted || !s.leads(r) {
		t.Fatalf("%+v", r)
	}
	if !r.arrived[11] || !r.arrived[12] || r.arrived[13] {
		t.Errorf("%v", r.arrived)
	}
	if message := s.describe(7); message.Leader.Id != 12 || len(message.PendingPeers) != 1 || message.PendingPeers[0].Id != 13 {
		t.Errorf("%v", message)
	}
	if !region.SameEpoch(s.describe(7).Region.RegionEpoch, three().RegionEpoch) {
		t.Error("PD is told another description")
	}
}
