package store

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/kvproto/pkg/metapb"

	"windlass.dev/lab/tidb-standin/program"
)

// options are what a store is started with, whether it stands in for TiKV or for TiFlash.
type options struct {
	pd       string
	data     string
	capacity uint64
	security program.Security
	// listen and status are where it serves its peers, and people.
	listen, status string
	// engine is where TiFlash's own protocol is served; nothing for TiKV.
	engine string
	// meta is what PD is told, without the id.
	meta metapb.Store
}

func tikvOptions(arguments []string) (*program.Program, *options, error) {
	p, err := program.Parse("tikv-server", arguments, "config",
		"pd", "pd-endpoints", "addr", "advertise-addr", "status-addr", "advertise-status-addr", "data-dir", "capacity", "labels")
	if err != nil {
		return nil, nil, err
	}
	capacity, err := size(program.First(p.Option("capacity"), p.File("raftstore.capacity")))
	if err != nil {
		return nil, nil, err
	}
	listen := program.First(p.Option("addr"), p.File("server.addr"), "127.0.0.1:20160")
	status := program.First(p.Option("status-addr"), p.File("server.status-addr"), "127.0.0.1:20180")
	address := program.First(p.Option("advertise-addr"), p.File("server.advertise-addr"), listen)
	labels := p.Table("server.labels")
	for pair := range strings.SplitSeq(p.Option("labels"), ",") {
		if name, value, found := strings.Cut(pair, "="); found {
			labels[name] = value
		}
	}
	return p, &options{
		pd:       program.First(p.Option("pd"), p.Option("pd-endpoints")),
		data:     program.First(p.Option("data-dir"), p.File("storage.data-dir"), "/var/lib/tikv"),
		capacity: capacity,
		security: program.Security{Authority: p.File("security.ca-path"), Certificate: p.File("security.cert-path"), Key: p.File("security.key-path")},
		listen:   listen,
		status:   status,
		meta: metapb.Store{
			Address:       address,
			PeerAddress:   address,
			StatusAddress: program.First(p.Option("advertise-status-addr"), p.File("server.advertise-status-addr"), status),
			Labels:        storeLabels(labels),
		},
	}, nil
}

// tiflashOptions come from two files: that of TiFlash names that of the proxy, which is what PD sees as the store.
func tiflashOptions(arguments []string) (*program.Program, *options, error) {
	p, err := program.Parse("tiflash", arguments, "config-file")
	if err != nil {
		return nil, nil, err
	}
	proxy := map[string]any{}
	if path := p.File("flash.proxy.config"); path != "" {
		if proxy, err = program.ReadFile(path); err != nil {
			return nil, nil, err
		}
	}
	capacity, err := size(program.Text(proxy, "raftstore.capacity"))
	if err != nil {
		return nil, nil, err
	}
	engine := program.First(p.File("flash.service_addr"), "0.0.0.0:3930")
	listen := program.First(p.File("flash.proxy.addr"), program.Text(proxy, "server.addr"), "0.0.0.0:20170")
	status := program.First(p.File("flash.proxy.status-addr"), program.Text(proxy, "server.status-addr"), "0.0.0.0:20292")
	labels := map[string]string{"engine": "tiflash"}
	if table, is := proxy["server.labels"].(map[string]any); is {
		for name, value := range table {
			labels[name] = fmt.Sprint(value)
		}
	}
	return p, &options{
		pd:       p.File("raft.pd_addr"),
		data:     program.First(p.File("flash.proxy.data-dir"), "/data0/proxy"),
		capacity: capacity,
		security: program.Security{Authority: p.File("security.ca_path"), Certificate: p.File("security.cert_path"), Key: p.File("security.key_path")},
		listen:   listen,
		status:   status,
		engine:   engine,
		meta: metapb.Store{
			Address:     program.First(program.Text(proxy, "server.engine-addr"), engine),
			PeerAddress: program.First(p.File("flash.proxy.advertise-addr"), program.Text(proxy, "server.advertise-addr"), listen),
			StatusAddress: program.First(
				p.File("flash.proxy.advertise-status-addr"), program.Text(proxy, "server.advertise-status-addr"), status),
			Labels: storeLabels(labels),
		},
	}, nil
}

func storeLabels(labels map[string]string) []*metapb.StoreLabel {
	var list []*metapb.StoreLabel
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, &metapb.StoreLabel{Key: name, Value: labels[name]})
	}
	return list
}

// units are those of TiKV's sizes, which are powers of 1024 with and without the i.
var units = map[string]uint64{
	"": 1, "B": 1,
	"K": 1 << 10, "KB": 1 << 10, "KIB": 1 << 10,
	"M": 1 << 20, "MB": 1 << 20, "MIB": 1 << 20,
	"G": 1 << 30, "GB": 1 << 30, "GIB": 1 << 30,
	"T": 1 << 40, "TB": 1 << 40, "TIB": 1 << 40,
}

// size reads a number of bytes; none given is 100 GiB.
func size(text string) (uint64, error) {
	if text == "" || text == "0" {
		return 100 << 30, nil
	}
	digits := strings.TrimRightFunc(text, func(letter rune) bool { return letter > '9' || letter < '0' })
	unit, known := units[strings.ToUpper(strings.TrimSpace(strings.TrimPrefix(text, digits)))]
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || !known {
		return 0, fmt.Errorf("%q is no size: write a number and a unit, such as 10GiB", text)
	}
	return number * unit, nil
}
