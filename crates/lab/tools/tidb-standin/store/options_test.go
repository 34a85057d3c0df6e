package store

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTiKVIsToldByOptionsBeforeItsFile(t *testing.T) {
	config := filepath.Join(t.TempDir(), "tikv.toml")
	if err := os.WriteFile(config, []byte("[server]\naddr = \"0.0.0.0:1\"\n[server.labels]\nzone = \"a\"\nrack = \"r\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, options, err := tikvOptions([]string{
		"--pd=http://pd:2379", "--advertise-addr=tikv-0:20160", "--addr=0.0.0.0:20160", "--status-addr=0.0.0.0:20180",
		"--data-dir=/data", "--capacity=10GB", "--config=" + config, "--labels", "zone=b",
	})
	if err != nil {
		t.Fatal(err)
	}
	if options.listen != "0.0.0.0:20160" || options.status != "0.0.0.0:20180" || options.data != "/data" || options.capacity != 10<<30 {
		t.Errorf("%+v", options)
	}
	meta := options.meta
	if meta.Address != "tikv-0:20160" || meta.PeerAddress != "tikv-0:20160" || meta.StatusAddress != "0.0.0.0:20180" {
		t.Errorf("%v", meta)
	}
	if len(meta.Labels) != 2 || meta.Labels[0].Value != "r" || meta.Labels[1].Value != "b" {
		t.Errorf("%v", meta.Labels)
	}
}

func TestTiFlashIsToldByTwoFiles(t *testing.T) {
	directory := t.TempDir()
	proxy, config := filepath.Join(directory, "proxy.toml"), filepath.Join(directory, "config.toml")
	texts := map[string]string{
		proxy: "[server]\nengine-addr = \"tiflash-0:3930\"\nstatus-addr = \"0.0.0.0:20292\"\nadvertise-status-addr = \"tiflash-0:20292\"\n",
		config: "[flash]\nservice_addr = \"0.0.0.0:3930\"\n[flash.proxy]\naddr = \"0.0.0.0:20170\"\nadvertise-addr = \"tiflash-0:20170\"\n" +
			"data-dir = \"/data0/proxy\"\nconfig = \"" + proxy + "\"\n[raft]\npd_addr = \"pd:2379\"\n",
	}
	for path, text := range texts {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, options, err := tiflashOptions([]string{"server", "--config-file", config})
	if err != nil {
		t.Fatal(err)
	}
	if options.pd != "pd:2379" || options.listen != "0.0.0.0:20170" || options.status != "0.0.0.0:20292" || options.engine != "0.0.0.0:3930" {
		t.Errorf("%+v", options)
	}
	meta := options.meta
	if meta.Address != "tiflash-0:3930" || meta.PeerAddress != "tiflash-0:20170" || meta.StatusAddress != "tiflash-0:20292" ||
		len(meta.Labels) != 1 || meta.Labels[0].Key != "engine" || meta.Labels[0].Value != "tiflash" {
		t.Errorf("%v", meta)
	}
}

func TestSizes(t *testing.T) {
	for text, expected := range map[string]uint64{"": 100 << 30, "0": 100 << 30, "1024": 1024, "10GB": 10 << 30, "5GiB": 5 << 30, "7 MiB": 7 << 20} {
		if bytes, err := size(text); err != nil || bytes != expected {
			t.Errorf("%q is %d, %v", text, bytes, err)
		}
	}
	for _, text := range []string{"much", "10XB", "-1GB"} {
		if bytes, err := size(text); err == nil {
			t.Errorf("%q is %d", text, bytes)
		}
	}
}
