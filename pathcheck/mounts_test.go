package pathcheck_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
)

func TestParseMounts(t *testing.T) {
	got, err := pathcheck.ParseMounts(`22 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
23 22 0:5 /a\040b /mnt/x\011y\134z\012 ro - tmpfs none\040 rw

24 22 0:6 / /m rw - overlay overlay rw,lowerdir=/l1:/l\134:2::/data,upperdir=/u\054p,workdir=/w
25 22 0:7 / /m2 rw - overlay none rw,lowerdir+=/a:b,datadir+=/d
26 22 0:8 / /home/u rw - nfs4 srv:/export/u rw,vers=4.2
27 22 0:8 / /v6 rw - nfs [fe80::1]:/ rw
28 22 0:9 /x//deleted /gone rw - ext4 /dev/vdb rw
`)
	if err != nil {
		t.Fatal(err)
	}
	want := pathcheck.Mounts{
		{ID: 22, Parent: 1, Dev: "254:0", Root: "/", Point: "/", Options: "rw,relatime", FSType: "ext4", Source: "/dev/vda", Super: "rw,discard"},
		{ID: 23, Parent: 22, Dev: "0:5", Root: "/a b", Point: "/mnt/x\ty\\z\n", Options: "ro", FSType: "tmpfs", Source: "none ", Super: "rw"},
		{
			ID: 24, Parent: 22, Dev: "0:6", Root: "/", Point: "/m", Options: "rw", FSType: "overlay", Source: "overlay",
			Super:  `rw,lowerdir=/l1:/l\:2::/data,upperdir=/u,p,workdir=/w`,
			Layers: []string{"/l1", "/l:2", "/data", "/u,p"},
		},
		{
			ID: 25, Parent: 22, Dev: "0:7", Root: "/", Point: "/m2", Options: "rw", FSType: "overlay", Source: "none",
			Super: "rw,lowerdir+=/a:b,datadir+=/d", Layers: []string{"/a:b", "/d"},
		},
		{ID: 26, Parent: 22, Dev: "0:8", Root: "/export/u", Point: "/home/u", Options: "rw", FSType: "nfs4", Source: "srv:/export/u", Super: "rw,vers=4.2"},
		{ID: 27, Parent: 22, Dev: "0:8", Root: "/", Point: "/v6", Options: "rw", FSType: "nfs", Source: "[fe80::1]:/", Super: "rw"},
		{ID: 28, Parent: 22, Dev: "0:9", Root: "/x//deleted", Point: "/gone", Options: "rw", FSType: "ext4", Source: "/dev/vdb", Super: "rw"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{"x", "22 1 254:0 / / rw ext4 /dev/vda rw", "a 1 254:0 / / rw - ext4 /dev/vda rw", "22 1 254:0 / / rw - ext4"} {
		if _, err := pathcheck.ParseMounts(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add(`23 22 0:5 /a\040b /mnt/x\011y\134z ro - overlay none\0 rw,lowerdir=a\134:\1:b\`)
	f.Fuzz(func(t *testing.T, text string) {
		ms, err := pathcheck.ParseMounts(text)
		if err != nil {
			return
		}
		for _, m := range ms {
			if strings.HasPrefix(m.Point, "/") {
				ms.Index().Of(m.Point)
				ms.Index().Aliases(m.Point)
			}
		}
	})
}

func TestMountsOf(t *testing.T) {
	tests := []struct {
		name, tree string
		want       map[string]int // path -> mount ID
	}{
		{"root only", "/a/b", map[string]int{"/": 1, "/a/b": 1, "/not/there": 1}},
		{"a mount", "/a/ mount ext4 8:2", map[string]int{"/a": 2, "/a/x": 2, "/ab": 1, "/": 1}},
		{"stacked", "/a/ mount ext4 8:2\n/a/ mount ext4 8:3\n/a/ mount ext4 8:4", map[string]int{"/a": 4, "/a/x": 4}},
		{"covered from above", "/a/b/ mount ext4 8:2\n/a/ mount ext4 8:3", map[string]int{"/a/b": 3, "/a/b/c": 3}},
		{"covered, and again below", "/a/b/ mount ext4 8:2\n/a/ mount ext4 8:3\n/a/b/ mount ext4 8:4", map[string]int{"/a/b": 4, "/a": 3}},
		{"on the root itself", "/ mount ext4 8:2", map[string]int{"/": 1, "/a": 1}},
		{"a file", "/etc/hosts\n/x\n/etc/hosts bind /x", map[string]int{"/etc/hosts": 2, "/etc": 1, "/etc/hosts2": 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ms := pathtest.New(tt.tree).Mounts()
			for path, want := range tt.want {
				if m, ok := ms.Index().Of(path); !ok || m.ID != want {
					t.Errorf("Of(%q) = %d, %v, want %d", path, m.ID, ok, want)
				}
			}
		})
	}
}

// TestMountsOfUnseenRoot: after chroot into a plain directory the table does
// not show the mount of "/", only what is mounted below.
func TestMountsOfUnseenRoot(t *testing.T) {
	ms, err := pathcheck.ParseMounts(`63 43 0:21 / /proc rw - proc proc rw
64 43 254:0 /usr /usr rw - ext4 /dev/vda rw
65 64 254:0 /srv /usr/srv rw - ext4 /dev/vda rw
`)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := ms.Index().Of("/srv"); ok {
		t.Errorf("/srv is on %d", m.ID)
	}
	if m, ok := ms.Index().Of("/usr/srv/x"); !ok || m.ID != 65 {
		t.Errorf("/usr/srv/x is on %d, %v", m.ID, ok)
	}
	if _, known := ms.Index().Aliases("/srv"); known {
		t.Error("aliases of /srv are said to be known")
	}
	if a, known := ms.Index().Aliases("/usr/srv"); !known || len(a) != 0 {
		t.Errorf("aliases of /usr/srv are %v, %v", a, known)
	}
	if _, known := pathcheck.Mounts(nil).Index().Aliases("/srv"); known {
		t.Error("aliases without a table are said to be known")
	}
}

func TestAliases(t *testing.T) {
	const secret = "/srv/secret/deep/key\n/srv/other\n"
	tests := []struct {
		name, tree, path string
		want             string // "alias=shows" …
	}{
		{"none", secret, "/srv/secret", ""},
		{"the place itself", secret + "/x bind /srv/secret", "/srv/secret", "/x=/srv/secret"},
		{"its parent", secret + "/x bind /srv", "/srv/secret", "/x/secret=/srv/secret"},
		{"something in it", secret + "/x bind /srv/secret/deep", "/srv/secret", "/x=/srv/secret/deep"},
		{"a file in it", secret + "/etc/x bind /srv/secret/deep/key", "/srv/secret", "/etc/x=/srv/secret/deep/key"},
		{"the root", secret + "/x bind /", "/srv/secret", "/x/srv/secret=/srv/secret"},
		{"a sibling", secret + "/x bind /srv/other", "/srv/secret", ""},
		{"a name that only starts alike", secret + "/srv/secret2/\n/x bind /srv/secret2", "/srv/secret", ""},
		{"not there yet", secret + "/x bind /srv", "/srv/new/thing", "/x/new/thing=/srv/new/thing"},
		{"seen from the alias", secret + "/x bind /srv", "/x/secret", "/srv/secret=/x/secret"},
		{"bind of a bind", secret + "/x bind /srv\n/y bind /x/secret", "/srv/secret", "/x/secret=/srv/secret /y=/srv/secret"},
		{"covered", secret + "/x bind /srv/secret\n/x/ mount tmpfs 0:9", "/srv/secret", ""},
		{"covered from above", secret + "/x/y bind /srv/secret\n/x/ mount tmpfs 0:9", "/srv/secret", ""},
		{"covered below the mount point", secret + "/x bind /srv\n/x/secret/ mount tmpfs 0:9", "/srv/secret", ""},
		{"other file system at the same path", secret + "/x/ mount ext4 8:2\n/x/srv/secret/", "/srv/secret", ""},
		{"second mount of a device", "/m/ mount ext4 8:2\n/m/s/\n/n bind /m", "/m/s", "/n/s=/m/s"},
		{"within the place", secret + "/srv/secret/again bind /srv/secret/deep", "/srv/secret", "/srv/secret/again=/srv/secret/deep /srv/secret/deep=/srv/secret/again"},
		{"a device below the place", secret + "/srv/secret/d/ mount ext4 8:2\n/srv/secret/d/f\n/n bind /srv/secret/d", "/srv/secret", "/n=/srv/secret/d"},
		{"a bind mount below the place", secret + "/usr/bin/\n/srv/secret/usr bind /usr", "/srv/secret", "/usr=/srv/secret/usr"},
		{"a covered mount below the place", secret + "/usr/bin/\n/srv/secret/usr bind /usr\n/srv/secret/ mount tmpfs 0:9", "/srv/secret", ""},
		{"under a space", "/srv/a.b/s/\n/m.n bind /srv/a.b", "/srv/a.b/s", "/m.n/s=/srv/a.b/s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, known := pathtest.New(tt.tree).Mounts().Index().Aliases(tt.path)
			if !known {
				t.Error("not known")
			}
			var text []string
			for _, a := range got {
				text = append(text, a.Path+"="+a.Shows)
			}
			if got := strings.Join(text, " "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestAliasesEscaped(t *testing.T) {
	ms, err := pathcheck.ParseMounts(`1 0 8:1 / / rw - ext4 a rw
2 1 8:1 /my\040files /mnt/the\040mount rw - ext4 a rw
3 1 8:1 /my\040files/secret//deleted /mnt/unlinked rw - ext4 a rw
`)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := ms.Index().Aliases("/my files/secret")
	want := []pathcheck.Alias{
		{Path: "/mnt/the mount/secret", Shows: "/my files/secret", FSType: "ext4"},
		// An inode that lost its name is still what the mount shows.
		{Path: "/mnt/unlinked", Shows: "/my files/secret//deleted", FSType: "ext4"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
