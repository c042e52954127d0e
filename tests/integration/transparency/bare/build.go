package bare

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A Role is one of the programs.
type Role string

// The programs, as testdata/program describes them.
const (
	caller  Role = "caller"
	Witness Role = "witness"
	Waiter  Role = "waiter"
	Opener  Role = "opener"
	Real    Role = "real"
)

// RealCode and WaiterCode are exit statuses of Real and Waiter.
const (
	RealCode   = 42
	WaiterCode = 37
)

const source = "github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/transparency/bare/testdata/program"

var built struct {
	sync.Mutex
	files map[Role][]byte
}

// program returns the file of a role, built once per test process.
func program(tb testing.TB, role Role) []byte {
	tb.Helper()
	built.Lock()
	defer built.Unlock()
	if data, ok := built.files[role]; ok {
		return data
	}
	dir, err := os.MkdirTemp("", "bare-")
	if err != nil {
		tb.Fatal(err)
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "out")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -E bare_entry -X main.role="+string(role), "-o", out, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		tb.Fatal(fmt.Errorf("build %s: %w\n%s", role, err, text))
	}
	data, err := os.ReadFile(out)
	if err != nil {
		tb.Fatal(err)
	}
	if built.files == nil {
		built.files = make(map[Role][]byte)
	}
	built.files[role] = data
	return data
}

// Install puts the program at dir/name and returns its path.
func (r Role) Install(tb testing.TB, dir, name string) string {
	tb.Helper()
	return launch.WriteProgram(tb, filepath.Join(dir, name), program(tb, r))
}
