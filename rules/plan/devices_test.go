package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// TestDevices: each line of /dev, and the grants that it leads to.
func TestDevices(t *testing.T) {
	tests := []struct{ tree, want string }{
		{"/dev/null char 1:3", "/dev/null=device"},
		{"/dev/zero char 1:5", "/dev/zero=device"},
		{"/dev/tty char 5:0", "/dev/tty=device"},
		{"/dev/kvm char 10:232", "/dev/kvm=device"},
		{"/dev/mem char 1:1", ""},
		{"/dev/kmem char 1:2", ""},
		{"/dev/port char 1:4", ""},
		{"/dev/oldmem char 1:12", ""},
		{"/dev/innocent char 1:1", ""}, // the number counts, not the name
		{"/dev/sg0 char 21:0", ""},
		{"/dev/mtd0 char 90:0", ""},
		{"/dev/nvme0 char 240:0", ""},
		{"/dev/ng0n1 char 241:0", ""},
		{"/dev/bsg/0:0:0:0 char 242:0", ""},
		{"/dev/raw/raw1 char 162:1", ""},
		{"/dev/cpu/0/msr char 202:0\n/dev/cpu/0/cpuid char 203:0", "/dev/cpu/0/cpuid=device"},
		{"/dev/sda block 8:0", ""},
		{"/dev/mapper/root block 252:0\n/dev/mapper/control char 10:236", "/dev/mapper/control=device"},
		{"/dev/disk/by-id/x -> ../../sda\n/dev/sda block 8:0", "/dev/disk=full+ioctl"}, // nothing but links
		{"/dev/dri/card0 char 226:0\n/dev/dri/by-path/x -> ../card0", "/dev/dri=full+ioctl"},
		{"/dev/snd/seq char 116:1\n/dev/snd/deep/er/b block 8:1\n/dev/snd/deep/c char 116:2", "/dev/snd/deep/c=device /dev/snd/seq=device"},
		// Too deep to look through at once.
		{"/dev/a/b/c/d/e/f/g/null char 1:3", "/dev/a/b/c/d=full+ioctl"},
		{"/dev/closed/ nolist\n/dev/closed/sda block 8:0", ""},
		{"/dev/log socket\n/dev/initctl fifo\n/dev/core -> /proc/kcore", "/dev/initctl=file /dev/log=file"},
		{"/dev/dead/ fail", ""},
		// What may be made there later is no worry: device nodes cannot be.
		{"/dev/pts/0 char 136:0\n/dev/shm/f", "/dev/pts=full+ioctl /dev/shm=full+ioctl"},
	}
	for _, tt := range tests {
		t.Run(tt.tree, func(t *testing.T) {
			tree := pathtest.New("/srv/secret/\n/dev/ mount devtmpfs 0:5\n" + tt.tree)
			got, _ := walk(t, tree, policy("-/srv/secret"), user(tree))
			want := strings.Fields(tt.want)
			if diff := cmp.Diff(want, append([]string{}, got...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDevicesElsewhere: memory is known by its number anywhere; a disk's node
// in a directory that is granted whole is not looked for.
func TestDevicesElsewhere(t *testing.T) {
	tree := pathtest.New("/srv/secret/\n/srv/mem char 1:1\n/srv/tty char 5:0\n/srv/sda block 8:0\n/srv/dir/sda block 8:0")
	got, _ := walk(t, tree, policy("-/srv/secret"), user(tree))
	if diff := cmp.Diff([]string{"/srv/dir=full", "/srv/tty=device"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDevicesMany: a directory too large to look through is granted entry by entry.
func TestDevicesMany(t *testing.T) {
	var b strings.Builder
	b.WriteString("/srv/secret/\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "/dev/many/c%d char 60:%d\n", i, i)
	}
	tree := pathtest.New(b.String())
	got, tally := walk(t, tree, policy("-/srv/secret"), user(tree))
	if len(got) != 5000 || slices.ContainsFunc(got, func(g string) bool { return !strings.HasSuffix(g, "=device") }) {
		t.Errorf("%d grants, the first %v", len(got), got[:min(3, len(got))])
	}
	if diff := cmp.Diff([]string{"/dev/many"}, tally.Split); diff != "" {
		t.Errorf("split (-want +got):\n%s", diff)
	}
}

// TestReachesDisk: which open devices lead below the file system.
func TestReachesDisk(t *testing.T) {
	tree := pathtest.New("/dev/sda block 8:0\n/srv/disk block 8:0\n/srv/mem char 1:1\n/dev/nvme0 char 240:0\n/srv/nvme0 char 240:0\n" +
		"/dev/null char 1:3\n/dev/tty char 5:0\n/dev/shm/f\n/dev/bsg/0 char 242:0\n/srv/dir/")
	for path, want := range map[string]bool{
		"/dev/sda": true, "/srv/disk": true, "/srv/mem": true, "/dev/nvme0": true, "/dev/bsg/0": true,
		"/srv/nvme0": false, "/dev/null": false, "/dev/tty": false, "/dev/shm/f": false, "/srv/dir": false,
	} {
		if got := plan.ReachesDisk(path, tree.Info(path)); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
