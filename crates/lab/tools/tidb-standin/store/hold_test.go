package store

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestARegionThatIsHeldStaysUntilItIsLetGo(t *testing.T) {
	s, _ := second(t)
	hold := func(body string) {
		request := httptest.NewRequest(http.MethodPost, "/standin/hold", strings.NewReader(body))
		answer := httptest.NewRecorder()
		s.onHold(answer, request)
		if answer.Code != http.StatusOK {
			t.Fatalf("%s is answered with %d", body, answer.Code)
		}
	}
	who := parting{Region: 7, Peer: 12, Epoch: three().RegionEpoch}
	leaves := func() bool {
		for range 50 {
			if s.onRelease(who).Granted {
				return true
			}
			time.Sleep(10 * time.Millisecond)
		}
		return false
	}
	hold(`{"region": 7}`)
	if leaves() {
		t.Fatal("it left")
	}
	hold(`{"region": 8}`)
	if !leaves() {
		t.Fatal("it stays although another one is held")
	}
}
