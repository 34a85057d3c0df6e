package program

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCommandLinesOfStartScripts(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.toml")
	text := "addr = \"file:1\"\n[server]\nstatus-port = 20180\n[server.labels]\nzone = \"a\"\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"server", "--pd=http://pd:2379", "-L", "info", "--labels", "zone=b,host=c", "--log-file=", "--debug", "--config", config}
	p, err := Parse("tikv-server", arguments, "config", "pd", "labels")
	if err != nil {
		t.Fatal(err)
	}
	for name, expected := range map[string]string{
		"pd": "http://pd:2379", "L": "info", "labels": "zone=b,host=c", "log-file": "", "debug": "true", "absent": "",
	} {
		if value := p.Option(name); value != expected {
			t.Errorf("--%s is %q", name, value)
		}
	}
	if !slices.Equal(p.Arguments, []string{"server"}) {
		t.Errorf("%v", p.Arguments)
	}
	if p.File("addr") != "file:1" || p.File("server.status-port") != "20180" || p.Table("server.labels")["zone"] != "a" {
		t.Errorf("%v", p.file)
	}
	if _, err := Parse("tikv-server", []string{"--config=/nowhere"}, "config"); err == nil {
		t.Error("a configuration file that is not there is taken")
	}
}

func TestAHangingStandInAnswersOnlyToBeLetGo(t *testing.T) {
	faults := NewFaults("limp")
	server := httptest.NewServer(faults.Around(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		Reply(writer, http.StatusOK, "here")
	})))
	defer server.Close()
	client := &http.Client{Timeout: 300 * time.Millisecond}
	set := func(body string) *http.Response {
		response, err := client.Post(server.URL+"/standin/faults", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	if response := set(`{"dance": true}`); response.StatusCode != http.StatusBadRequest {
		t.Errorf("an unknown fault: %s", response.Status)
	}
	set(`{"hang": true, "limp": true}`)
	if response, err := client.Get(server.URL + "/status"); err == nil {
		t.Errorf("it answers %s", response.Status)
	}
	var present map[string]bool
	if err := json.NewDecoder(set(`{"hang": false}`).Body).Decode(&present); err != nil || present["hang"] || !present["limp"] {
		t.Errorf("%v, %v", present, err)
	}
	if _, err := client.Get(server.URL + "/status"); err != nil {
		t.Error(err)
	}
}
