package hiding

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A disk is a file system on a block device of its own, mounted at $W/disk:
//
//	secret/f   the hidden text
//	open/f
type disk struct {
	node   string // the block device
	number string // "major:minor"
	image  string // the file behind it
}

func newDisk(t *testing.T, w *world) disk {
	t.Helper()
	image := filepath.Join(launch.Dir(t), "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 8<<20); err != nil {
		t.Fatal(err)
	}
	run(t, "mkfs.ext4", "-q", "-F", image)
	node := strings.TrimSpace(run(t, "losetup", "--find", "--show", image))
	t.Cleanup(func() { run(t, "losetup", "--detach", node) })
	w.mount(t, node, "$W/disk", "ext4", 0, "")
	w.user.Own(t, w.at("$W/disk"))
	for _, dir := range []string{"secret", "open"} {
		w.mkdir(t, "$W/disk/"+dir)
		w.write(t, "$W/disk/"+dir+"/f", dir+": "+secret)
	}
	unix.Sync()
	var st unix.Stat_t
	if err := unix.Stat(node, &st); err != nil {
		t.Fatal(err)
	}
	return disk{node: node, number: number(uint64(st.Rdev)), image: image}
}

func number(dev uint64) string {
	return strings.Join([]string{decimal(unix.Major(dev)), decimal(unix.Minor(dev))}, ":")
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
