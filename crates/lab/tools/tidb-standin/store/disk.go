package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pingcap/kvproto/pkg/metapb"
)

// kept is what a store has in its data directory: with it, a restarted store is the same one; without, it is another.
type kept struct {
	Cluster uint64 `json:"cluster"`
	Store   uint64 `json:"store"`
	// First is the region that this store offered to bootstrap the cluster with, until it is known whether PD took it.
	First    *metapb.Region      `json:"first,omitempty"`
	Replicas map[uint64]*replica `json:"replicas"`
}

type disk struct {
	path string
}

func openDisk(directory string) (*disk, error) {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the data directory: %w", err)
	}
	return &disk{path: filepath.Join(directory, "standin-store.json")}, nil
}

// read is nothing when the directory is new.
func (d *disk) read() (*kept, error) {
	text, err := os.ReadFile(d.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	state := &kept{}
	if err := json.Unmarshal(text, state); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", d.path, err)
	}
	return state, nil
}

// write replaces the state as a whole, so that an end in between leaves the old one.
func (d *disk) write(state *kept) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	partial := d.path + ".partial"
	if err := os.WriteFile(partial, text, 0o644); err != nil {
		return err
	}
	return os.Rename(partial, d.path)
}
