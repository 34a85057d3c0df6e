package region

import (
	"testing"

	"github.com/pingcap/kvproto/pkg/eraftpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
)

const (
	voter    = metapb.PeerRole_Voter
	learner  = metapb.PeerRole_Learner
	coming   = metapb.PeerRole_IncomingVoter
	demoting = metapb.PeerRole_DemotingVoter

	addVoter   = eraftpb.ConfChangeType_AddNode
	addLearner = eraftpb.ConfChangeType_AddLearnerNode
	drop       = eraftpb.ConfChangeType_RemoveNode
)

// with has a peer on each store from 1 on, whose id is ten times the store's.
func with(roles ...metapb.PeerRole) *metapb.Region {
	meta := &metapb.Region{Id: 1, RegionEpoch: &metapb.RegionEpoch{Version: 1, ConfVer: 5}}
	for at, role := range roles {
		store := uint64(at + 1)
		meta.Peers = append(meta.Peers, &metapb.Peer{Id: store * 10, StoreId: store, Role: role})
	}
	return meta
}

func change(kind eraftpb.ConfChangeType, store uint64) *pdpb.ChangePeer {
	return &pdpb.ChangePeer{ChangeType: kind, Peer: &metapb.Peer{Id: store * 10, StoreId: store}}
}

func TestChange(t *testing.T) {
	cases := map[string]struct {
		before  *metapb.Region
		changes []*pdpb.ChangePeer
		after   map[uint64]metapb.PeerRole
		counted uint64
	}{
		"a learner is added":   {with(voter, voter), []*pdpb.ChangePeer{change(addLearner, 3)}, map[uint64]metapb.PeerRole{1: voter, 2: voter, 3: learner}, 1},
		"a learner is raised":  {with(voter, learner), []*pdpb.ChangePeer{change(addVoter, 2)}, map[uint64]metapb.PeerRole{1: voter, 2: voter}, 1},
		"a learner is removed": {with(voter, learner), []*pdpb.ChangePeer{change(drop, 2)}, map[uint64]metapb.PeerRole{1: voter}, 1},
		"a voter makes way for a learner": {
			with(voter, voter, voter, learner), []*pdpb.ChangePeer{change(addVoter, 4), change(addLearner, 1)},
			map[uint64]metapb.PeerRole{1: demoting, 2: voter, 3: voter, 4: coming}, 2,
		},
		"the old configuration is left": {with(demoting, voter, voter, coming), nil, map[uint64]metapb.PeerRole{1: learner, 2: voter, 3: voter, 4: voter}, 2},
	}
	for name, test := range cases {
		before := test.before.String()
		changed, err := Change(test.before, test.changes)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		roles := map[uint64]metapb.PeerRole{}
		for _, peer := range changed.Peers {
			roles[peer.StoreId] = peer.Role
			if peer.Id != peer.StoreId*10 {
				t.Errorf("%s: the peer on store %d has the id %d", name, peer.StoreId, peer.Id)
			}
		}
		if len(roles) != len(test.after) {
			t.Errorf("%s: %v", name, roles)
		}
		for store, role := range test.after {
			if roles[store] != role {
				t.Errorf("%s: store %d is %v, not %v", name, store, roles[store], role)
			}
		}
		if counted := changed.RegionEpoch.ConfVer - 5; counted != test.counted {
			t.Errorf("%s: counted %d changes, not %d", name, counted, test.counted)
		}
		if before != test.before.String() {
			t.Errorf("%s: the description that was given has changed", name)
		}
	}
}

func TestChangeIsRefused(t *testing.T) {
	other := change(addVoter, 2)
	other.Peer.Id = 99
	cases := map[string]struct {
		before  *metapb.Region
		changes []*pdpb.ChangePeer
	}{
		"a change between two configurations":  {with(demoting, voter, coming), []*pdpb.ChangePeer{change(addLearner, 4)}},
		"leaving what was not entered":         {with(voter, voter, voter), nil},
		"another peer on the same store":       {with(voter, learner), []*pdpb.ChangePeer{other}},
		"removing what is not there":           {with(voter), []*pdpb.ChangePeer{change(drop, 2)}},
		"removing a voter on the way to joint": {with(voter, voter, learner), []*pdpb.ChangePeer{change(addVoter, 3), change(drop, 1)}},
	}
	for name, test := range cases {
		if changed, err := Change(test.before, test.changes); err == nil {
			t.Errorf("%s: %v", name, changed)
		}
	}
}

func TestMajority(t *testing.T) {
	cases := map[string]struct {
		meta  *metapb.Region
		agree []uint64
		has   bool
	}{
		"one of one":                         {with(voter), []uint64{1}, true},
		"two of three":                       {with(voter, voter, voter), []uint64{1, 3}, true},
		"one of three":                       {with(voter, voter, voter), []uint64{1}, false},
		"a learner does not count":           {with(voter, voter, learner), []uint64{1, 3}, false},
		"both configurations":                {with(demoting, voter, voter, coming), []uint64{2, 3}, true},
		"only the coming one":                {with(demoting, voter, voter, coming), []uint64{2, 4}, false},
		"only the going one":                 {with(demoting, voter, voter, coming), []uint64{1, 2}, false},
		"one each way, and one that is both": {with(demoting, voter, voter, coming), []uint64{1, 2, 4}, true},
	}
	for name, test := range cases {
		has := HasMajority(test.meta, func(store uint64) bool {
			for _, one := range test.agree {
				if one == store {
					return true
				}
			}
			return false
		})
		if has != test.has {
			t.Errorf("%s: %v", name, has)
		}
	}
}

func TestSplitCoversTheSameKeys(t *testing.T) {
	ids := []*pdpb.SplitID{{NewRegionId: 7, NewPeerIds: []uint64{71}}, {NewRegionId: 8, NewPeerIds: []uint64{81}}}
	parts, err := Split(with(voter), [][]byte{[]byte("g"), []byte("p")}, ids)
	if err != nil {
		t.Fatal(err)
	}
	expected := []struct {
		id         uint64
		start, end string
		peer       uint64
	}{{7, "", "g", 71}, {8, "g", "p", 81}, {1, "p", "", 10}}
	for at, part := range parts {
		want := expected[at]
		if part.Id != want.id || string(part.StartKey) != want.start || string(part.EndKey) != want.end || part.Peers[0].Id != want.peer {
			t.Errorf("part %d is %v", at, part)
		}
		if part.RegionEpoch.Version != 3 {
			t.Errorf("part %d has the version %d", at, part.RegionEpoch.Version)
		}
	}
	if _, err := Split(with(voter), [][]byte{[]byte("g")}, ids); err == nil {
		t.Error("ids that do not fit are taken")
	}
}
