// Package pd talks to the real PD, by its own protocol.
package pd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"windlass.dev/lab/tidb-standin/program"
)

// patience is how long one call may take.
const patience = 3 * time.Second

// ErrTombstone is PD's answer to a store that it has buried.
var ErrTombstone = errors.New("PD says that this store is a tombstone")

// ErrBootstrapped is PD's answer to a second bootstrap.
var ErrBootstrapped = errors.New("PD says that the cluster is bootstrapped already")

// ErrNotBootstrapped is PD's answer while there is no cluster.
var ErrNotBootstrapped = errors.New("PD says that the cluster is not bootstrapped")

// Client calls the leader of the PD members, whichever that is.
type Client struct {
	endpoints   []string
	credentials credentials.TransportCredentials

	mutex   sync.Mutex
	leader  *grpc.ClientConn
	cluster uint64
	// members are those that PD last told: the addresses that were given may be of one that is gone.
	members []string
}

// New takes addresses of members or of their Service, separated by commas, with or without scheme.
func New(addresses string, security program.Security) (*Client, error) {
	config, err := security.Config()
	if err != nil {
		return nil, err
	}
	client := &Client{credentials: insecure.NewCredentials()}
	if config != nil {
		client.credentials = credentials.NewTLS(config)
	}
	client.endpoints = Endpoints(addresses)
	if len(client.endpoints) == 0 {
		return nil, errors.New("no address of PD is given")
	}
	return client, nil
}

// Endpoints are the addresses in a list, as host and port.
func Endpoints(addresses string) []string {
	var endpoints []string
	for address := range strings.SplitSeq(addresses, ",") {
		address = strings.TrimSpace(address)
		if _, rest, found := strings.Cut(address, "://"); found {
			address = rest
		}
		if address = strings.TrimRight(address, "/"); address != "" {
			endpoints = append(endpoints, address)
		}
	}
	return endpoints
}

// Cluster is the cluster's id, once PD was heard.
func (c *Client) Cluster() uint64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.cluster
}

// Leader is a connection to the leading member.
func (c *Client) Leader(ctx context.Context) (pdpb.PDClient, *pdpb.RequestHeader, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.leader == nil {
		if err := c.find(ctx); err != nil {
			return nil, nil, err
		}
	}
	return pdpb.NewPDClient(c.leader), &pdpb.RequestHeader{ClusterId: c.cluster}, nil
}

// Forget makes the next call look for the leader again.
func (c *Client) Forget() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.leader != nil {
		_ = c.leader.Close()
		c.leader = nil
	}
}

func (c *Client) find(ctx context.Context) error {
	failure := errors.New("no member of PD knows a leader")
	for _, endpoint := range slices.Concat(c.endpoints, c.members) {
		members, err := c.ask(ctx, endpoint)
		if err != nil {
			failure = fmt.Errorf("PD at %s: %w", endpoint, err)
			continue
		}
		if urls := members.GetLeader().GetClientUrls(); len(urls) > 0 {
			connection, err := c.dial(Endpoints(urls[0])[0])
			if err != nil {
				return err
			}
			c.leader, c.cluster, c.members = connection, members.GetHeader().GetClusterId(), nil
			for _, member := range members.GetMembers() {
				c.members = append(c.members, Endpoints(strings.Join(member.GetClientUrls(), ","))...)
			}
			return nil
		}
	}
	return failure
}

// ask asks one member who the members are.
func (c *Client) ask(ctx context.Context, endpoint string) (*pdpb.GetMembersResponse, error) {
	connection, err := c.dial(endpoint)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	members, err := pdpb.NewPDClient(connection).GetMembers(ctx, &pdpb.GetMembersRequest{})
	if err != nil {
		return nil, err
	}
	return members, Failure(members.GetHeader())
}

func (c *Client) dial(endpoint string) (*grpc.ClientConn, error) {
	// The name is looked up at each attempt to connect: a restarted member has another address.
	return grpc.NewClient("passthrough:///"+endpoint, grpc.WithTransportCredentials(c.credentials), grpc.WithNoProxy())
}

// call asks the leader, and once more when the leader has changed meanwhile.
func (c *Client) call(ctx context.Context, ask func(context.Context, pdpb.PDClient, *pdpb.RequestHeader) (*pdpb.ResponseHeader, error)) error {
	var err error
	for range 2 {
		var client pdpb.PDClient
		var header *pdpb.RequestHeader
		if client, header, err = c.Leader(ctx); err != nil {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, patience)
		var answer *pdpb.ResponseHeader
		answer, err = ask(limited, client, header)
		cancel()
		if err == nil {
			return Failure(answer)
		}
		c.Forget()
	}
	return err
}

// Failure is what PD's answer says went wrong.
func Failure(header *pdpb.ResponseHeader) error {
	refusal := header.GetError()
	switch refusal.GetType() {
	case pdpb.ErrorType_OK:
		return nil
	case pdpb.ErrorType_STORE_TOMBSTONE:
		return ErrTombstone
	case pdpb.ErrorType_ALREADY_BOOTSTRAPPED:
		return ErrBootstrapped
	case pdpb.ErrorType_NOT_BOOTSTRAPPED:
		return ErrNotBootstrapped
	default:
		return fmt.Errorf("PD refuses: %s", refusal.GetMessage())
	}
}

// AllocateID gives an id that nobody else in the cluster has.
func (c *Client) AllocateID(ctx context.Context) (id uint64, err error) {
	err = c.call(ctx, func(ctx context.Context, pd pdpb.PDClient, header *pdpb.RequestHeader) (*pdpb.ResponseHeader, error) {
		answer, err := pd.AllocID(ctx, &pdpb.AllocIDRequest{Header: header})
		id = answer.GetId()
		return answer.GetHeader(), err
	})
	return id, err
}

// Bootstrapped says whether there is a cluster.
func (c *Client) Bootstrapped(ctx context.Context) (is bool, err error) {
	err = c.call(ctx, func(ctx context.Context, pd pdpb.PDClient, header *pdpb.RequestHeader) (*pdpb.ResponseHeader, error) {
		answer, err := pd.IsBootstrapped(ctx, &pdpb.IsBootstrappedRequest{Header: header})
		is = answer.GetBootstrapped()
		return answer.GetHeader(), err
	})
	return is, err
}

// Bootstrap makes the cluster with its first store and region.
func (c *Client) Bootstrap(ctx context.Context, store *metapb.Store, region *metapb.Region) error {
	return c.call(ctx, func(ctx context.Context, pd pdpb.PDClient, header *pdpb.RequestHeader) (*pdpb.ResponseHeader, error) {
		answer, err := pd.Bootstrap(ctx, &pdpb.BootstrapRequest{Header: header, Store: store, Region: region})
		return answer.GetHeader(), err
	})
}

// RegionOf is the region that holds a key.
func (c *Client) RegionOf(ctx context.Context, key []byte) (region *metapb.Region, err error) {
	err = c.call(ctx, func(ctx context.Context, pd pdpb.PDClient, header *pdpb.RequestHeader) (*pdpb.ResponseHeader, error) {
		answer, err := pd.GetRegion(ctx, &pdpb.GetRegionRequest{Header: header, RegionKey: key})
		region = answer.GetRegion()
		return answer.GetHeader(), err
	})
	return region, err
}

// Region is what PD knows about a region; nothing when it knows none of this id.
func (c *Client) Region(ctx context.Context, id uint64) (region *metapb.Region, err error) {
	err = c.call(ctx, func(ctx context.Context, pd pdpb.PDClient, header *pdpb.RequestHeader) (*pdpb.ResponseHeader, error) {
		answer, err := pd.GetRegionByID(ctx, &pdpb.GetRegionByIDRequest{Header: header, RegionId: id})
		region = answer.GetRegion()
		return answer.GetHeader(), err
	})
	return region, err
}

// PutStore registers a store.
func (c *Client) PutStore(ctx context.Context, store *metapb.Store) error {
	return c.call(ctx, func(ctx context.Context, pd pdpb.PDClient, header *pdpb.RequestHeader) (*pdpb.ResponseHeader, error) {
		answer, err := pd.PutStore(ctx, &pdpb.PutStoreRequest{Header: header, Store: store})
		return answer.GetHeader(), err
	})
}

// Store is what PD knows about a store.
func (c *Client) Store(ctx context.Context, id uint64) (store *metapb.Store, err error) {
	err = c.call(ctx, func(ctx context.Context, pd pdpb.PDClient, header *pdpb.RequestHeader) (*pdpb.ResponseHeader, error) {
		answer, err := pd.GetStore(ctx, &pdpb.GetStoreRequest{Header: header, StoreId: id})
		store = answer.GetStore()
		return answer.GetHeader(), err
	})
	return store, err
}

// Stores are all stores that are no tombstones.
func (c *Client) Stores(ctx context.Context) (stores []*metapb.Store, err error) {
	err = c.call(ctx, func(ctx context.Context, pd pdpb.PDClient, header *pdpb.RequestHeader) (*pdpb.ResponseHeader, error) {
		answer, err := pd.GetAllStores(ctx, &pdpb.GetAllStoresRequest{Header: header, ExcludeTombstoneStores: true})
		stores = answer.GetStores()
		return answer.GetHeader(), err
	})
	return stores, err
}

// StoreHeartbeat tells PD that a store lives, and how full it is.
func (c *Client) StoreHeartbeat(ctx context.Context, stats *pdpb.StoreStats) error {
	return c.call(ctx, func(ctx context.Context, pd pdpb.PDClient, header *pdpb.RequestHeader) (*pdpb.ResponseHeader, error) {
		answer, err := pd.StoreHeartbeat(ctx, &pdpb.StoreHeartbeatRequest{Header: header, Stats: stats})
		return answer.GetHeader(), err
	})
}

// AskSplit gives ids for the parts that a region shall be split into.
func (c *Client) AskSplit(ctx context.Context, region *metapb.Region, parts int) (ids []*pdpb.SplitID, err error) {
	err = c.call(ctx, func(ctx context.Context, pd pdpb.PDClient, header *pdpb.RequestHeader) (*pdpb.ResponseHeader, error) {
		answer, err := pd.AskBatchSplit(ctx, &pdpb.AskBatchSplitRequest{Header: header, Region: region, SplitCount: uint32(parts)})
		ids = answer.GetIds()
		return answer.GetHeader(), err
	})
	return ids, err
}

// ReportSplit tells PD the parts of a region that was split.
func (c *Client) ReportSplit(ctx context.Context, regions []*metapb.Region) error {
	return c.call(ctx, func(ctx context.Context, pd pdpb.PDClient, header *pdpb.RequestHeader) (*pdpb.ResponseHeader, error) {
		answer, err := pd.ReportBatchSplit(ctx, &pdpb.ReportBatchSplitRequest{Header: header, Regions: regions})
		return answer.GetHeader(), err
	})
}
