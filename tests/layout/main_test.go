package layout

import (
	"os"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) {
	launch.Fresh()
	os.Exit(m.Run())
}
