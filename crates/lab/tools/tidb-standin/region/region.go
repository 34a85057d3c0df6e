// Package region decides how a region's description changes: who its peers are, which of them are a majority, where it is split.
// It is pure; what it returns is a new description, never the one it was given.
package region

import (
	"fmt"

	"github.com/gogo/protobuf/proto"
	"github.com/pingcap/kvproto/pkg/eraftpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
)

// Clone is a copy that shares nothing.
func Clone(meta *metapb.Region) *metapb.Region {
	return proto.Clone(meta).(*metapb.Region)
}

// OnStore is the region's peer on a store, or nothing.
func OnStore(meta *metapb.Region, store uint64) *metapb.Peer {
	for _, peer := range meta.GetPeers() {
		if peer.GetStoreId() == store {
			return peer
		}
	}
	return nil
}

// Votes says whether a peer has a say in who leads.
func Votes(peer *metapb.Peer) bool {
	return peer != nil && peer.GetRole() != metapb.PeerRole_Learner
}

// MayLead says whether a peer may be made the leader.
func MayLead(peer *metapb.Peer) bool {
	return peer != nil && (peer.GetRole() == metapb.PeerRole_Voter || peer.GetRole() == metapb.PeerRole_IncomingVoter)
}

// IsOlder says whether the first description is older than the second.
func IsOlder(first, second *metapb.RegionEpoch) bool {
	return first.GetVersion() < second.GetVersion() || first.GetConfVer() < second.GetConfVer()
}

// SameEpoch says whether two descriptions are of the same state.
func SameEpoch(first, second *metapb.RegionEpoch) bool {
	return first.GetVersion() == second.GetVersion() && first.GetConfVer() == second.GetConfVer()
}

// HasMajority says whether the stores that agree are a majority. Between two configurations they must be one of each.
func HasMajority(meta *metapb.Region, agree func(store uint64) bool) bool {
	majority := func(counts func(metapb.PeerRole) bool) bool {
		all, agreed := 0, 0
		for _, peer := range meta.GetPeers() {
			if counts(peer.GetRole()) {
				all++
				if agree(peer.GetStoreId()) {
					agreed++
				}
			}
		}
		return agreed > all/2
	}
	coming := func(role metapb.PeerRole) bool {
		return role == metapb.PeerRole_Voter || role == metapb.PeerRole_IncomingVoter
	}
	going := func(role metapb.PeerRole) bool {
		return role == metapb.PeerRole_Voter || role == metapb.PeerRole_DemotingVoter
	}
	return majority(coming) && majority(going)
}

// isJoint says whether the region is between two configurations.
func isJoint(meta *metapb.Region) bool {
	for _, peer := range meta.GetPeers() {
		if peer.GetRole() == metapb.PeerRole_IncomingVoter || peer.GetRole() == metapb.PeerRole_DemotingVoter {
			return true
		}
	}
	return false
}

// Change is the description after PD's order: one change at once, several by way of a joint configuration, none to leave that.
func Change(meta *metapb.Region, changes []*pdpb.ChangePeer) (*metapb.Region, error) {
	changed := Clone(meta)
	var count uint64
	var err error
	switch {
	case len(changes) == 0:
		count, err = leaveJoint(changed)
	case isJoint(meta):
		return nil, fmt.Errorf("region %d is between two configurations", meta.GetId())
	case len(changes) == 1:
		count, err = 1, simple(changed, changes[0])
	default:
		count = uint64(len(changes))
		for _, change := range changes {
			if err = enterJoint(changed, change); err != nil {
				break
			}
		}
	}
	if err != nil {
		return nil, err
	}
	changed.RegionEpoch.ConfVer += count
	return changed, nil
}

func leaveJoint(meta *metapb.Region) (uint64, error) {
	var count uint64
	for _, peer := range meta.Peers {
		switch peer.Role {
		case metapb.PeerRole_IncomingVoter:
			peer.Role = metapb.PeerRole_Voter
		case metapb.PeerRole_DemotingVoter:
			peer.Role = metapb.PeerRole_Learner
		default:
			continue
		}
		count++
	}
	if count == 0 {
		return 0, fmt.Errorf("region %d is not between two configurations", meta.GetId())
	}
	return count, nil
}

func simple(meta *metapb.Region, change *pdpb.ChangePeer) error {
	present := OnStore(meta, change.GetPeer().GetStoreId())
	if present != nil && present.GetId() != change.GetPeer().GetId() {
		return fmt.Errorf("region %d has another peer on store %d", meta.GetId(), present.GetStoreId())
	}
	switch change.GetChangeType() {
	case eraftpb.ConfChangeType_AddNode:
		setRole(meta, present, change.GetPeer(), metapb.PeerRole_Voter)
	case eraftpb.ConfChangeType_AddLearnerNode:
		setRole(meta, present, change.GetPeer(), metapb.PeerRole_Learner)
	case eraftpb.ConfChangeType_RemoveNode:
		if present == nil {
			return fmt.Errorf("region %d has no peer on store %d", meta.GetId(), change.GetPeer().GetStoreId())
		}
		remove(meta, present)
	}
	return nil
}

func enterJoint(meta *metapb.Region, change *pdpb.ChangePeer) error {
	present := OnStore(meta, change.GetPeer().GetStoreId())
	if present != nil && present.GetId() != change.GetPeer().GetId() {
		return fmt.Errorf("region %d has another peer on store %d", meta.GetId(), present.GetStoreId())
	}
	switch {
	case change.GetChangeType() == eraftpb.ConfChangeType_AddNode && !MayLead(present):
		setRole(meta, present, change.GetPeer(), metapb.PeerRole_IncomingVoter)
	case change.GetChangeType() == eraftpb.ConfChangeType_AddLearnerNode && MayLead(present):
		present.Role = metapb.PeerRole_DemotingVoter
	case change.GetChangeType() == eraftpb.ConfChangeType_AddLearnerNode && present == nil:
		setRole(meta, nil, change.GetPeer(), metapb.PeerRole_Learner)
	case change.GetChangeType() == eraftpb.ConfChangeType_RemoveNode && present != nil && !Votes(present):
		remove(meta, present)
	default:
		return fmt.Errorf("region %d cannot do %s on store %d on the way to another configuration",
			meta.GetId(), change.GetChangeType(), change.GetPeer().GetStoreId())
	}
	return nil
}

func setRole(meta *metapb.Region, present, wanted *metapb.Peer, role metapb.PeerRole) {
	if present == nil {
		present = &metapb.Peer{Id: wanted.GetId(), StoreId: wanted.GetStoreId()}
		meta.Peers = append(meta.Peers, present)
	}
	present.Role = role
}

func remove(meta *metapb.Region, gone *metapb.Peer) {
	var rest []*metapb.Peer
	for _, peer := range meta.Peers {
		if peer != gone {
			rest = append(rest, peer)
		}
	}
	meta.Peers = rest
}

// Split cuts a region at keys. The last part is the region itself, the others have the ids that PD gave.
func Split(meta *metapb.Region, keys [][]byte, ids []*pdpb.SplitID) ([]*metapb.Region, error) {
	if len(keys) != len(ids) {
		return nil, fmt.Errorf("region %d shall be cut at %d keys, but PD gave %d ids", meta.GetId(), len(keys), len(ids))
	}
	start := meta.GetStartKey()
	version := meta.GetRegionEpoch().GetVersion() + uint64(len(keys))
	var parts []*metapb.Region
	for at, key := range keys {
		part := Clone(meta)
		part.Id, part.StartKey, part.EndKey = ids[at].GetNewRegionId(), start, key
		part.RegionEpoch.Version = version
		for number, peer := range part.Peers {
			peer.Id = ids[at].GetNewPeerIds()[number]
		}
		parts, start = append(parts, part), key
	}
	last := Clone(meta)
	last.StartKey, last.RegionEpoch.Version = start, version
	return append(parts, last), nil
}
