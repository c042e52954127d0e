package workspace_test

import (
	"os"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(tm *testing.M) {
	if os.Args[0] == probeName {
		probe() // does not return
	}
	launch.Main(tm)
}

// m is a JSON object.
type m = map[string]any
