package rights

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDaemonSetHasWhatDoctorNames compares the capabilities of packaging/daemonset.yaml with those that a report names where all
// are missing.
func TestDaemonSetHasWhatDoctorNames(t *testing.T) {
	m := newMachine()
	m.status("0", everything, "")
	r := m.ExamineSystem()
	named := map[string]bool{}
	for i := range r.Features {
		f := &r.Features[i]
		for _, name := range regexp.MustCompile(`CAP_[A-Z_]+`).FindAllString(f.Name+" "+f.Detail, -1) {
			named[strings.TrimPrefix(name, "CAP_")] = true
		}
	}
	delete(named, "SYS_ADMIN") // it includes two of them, and much else
	text, err := os.ReadFile(filepath.Join("..", "..", "packaging", "daemonset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`\n +drop: \[ALL\]\n +add: \[(.*)\]\n`).FindSubmatch(text)
	if match == nil {
		t.Fatal("the manifest does not drop all capabilities and add some")
	}
	list := strings.Split(string(match[1]), ", ")
	for _, name := range list {
		if !named[name] {
			t.Errorf("%s is not among those that doctor names: %v", name, named)
		}
	}
	if len(list) != len(named) || len(named) < 5 || !slices.Contains(list, "BPF") {
		t.Errorf("the manifest has %v, doctor names %v", list, named)
	}
	if !strings.Contains(string(text), "args: [attach, --all, --headless, --listen,") || !strings.Contains(string(text), "privileged: false") {
		t.Error("the manifest has other arguments, or is privileged")
	}
}
