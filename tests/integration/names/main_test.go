package names

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

const policyVariable = "SANDBOX_EXEC_SHIM_POLICY"

// random returns a source that SHIM_TEST_SEED repeats.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SHIM_TEST_SEED"); text != "" {
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = v
	}
	t.Logf("SHIM_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
