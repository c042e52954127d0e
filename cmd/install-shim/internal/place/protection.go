package place

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// What keeps a launch from taking a shim out of the way of the next one by the mode,
// owner or access control list of a file, which no policy confines.
const (
	byFlag  = "immutable"
	byMount = "read-only-mount"
	byOwner = "owner"    // neither the shim nor a directory on the way is this user's
	byPlace = "in-place" // the name leads to nothing else: what then fails is the start
)

// A protection is what stands in front of a shim. The keys are stable.
type protection struct {
	By []string `json:"by"`
	// Changeable are the shim and directories on the way to it whose mode could be
	// changed so that PATH leads past the shim. In place there are none.
	Changeable []string `json:"changeable"`
	// users are those who can: the one who asks, and the one who installed it.
	users []string
}

// protection looks at what is there now.
func (s *site) protection() protection {
	p := protection{By: []string{}, Changeable: []string{}}
	shim, ok := attributesOf(s.path())
	if !ok {
		return p
	}
	way := directoriesTo(s.path())
	me := uint32(os.Geteuid())
	users := []uint32{me}
	if shim.uid != me && shim.uid != 0 {
		users = append(users, shim.uid)
	}
	mine := false
	for _, uid := range users {
		if could := changeable(uid, s.path(), shim, way); len(could) > 0 {
			mine = mine || uid == me
			p.users = append(p.users, fmt.Sprint(uid))
			p.Changeable = append(p.Changeable, could...)
		}
	}
	slices.Sort(p.Changeable)
	p.Changeable = slices.Compact(p.Changeable)
	for _, by := range []struct {
		what   string
		stands bool
	}{
		{byFlag, shim.immutable},
		{byMount, shim.readOnly},
		{byOwner, me != 0 && !mine && shim.uid != me},
		{byPlace, s.inPlace()},
	} {
		if by.stands {
			p.By = append(p.By, by.what)
		}
	}
	if s.inPlace() {
		p.Changeable, p.users = []string{}, nil
	}
	return p
}

// attributes are those of a file that decide who changes its mode.
type attributes struct {
	uid                         uint32
	immutable, append, readOnly bool
}

func attributesOf(path string) (a attributes, ok bool) {
	var stx unix.Statx_t
	var fs unix.Statfs_t
	if unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BASIC_STATS, &stx) != nil || unix.Statfs(path, &fs) != nil {
		return a, false
	}
	return attributes{
		stx.Uid, stx.Attributes&unix.STATX_ATTR_IMMUTABLE != 0, stx.Attributes&unix.STATX_ATTR_APPEND != 0, fs.Flags&unix.ST_RDONLY != 0,
	}, true
}

// changedBy reports whether a confined program of a user could change the mode.
func (a attributes) changedBy(uid uint32) bool {
	return (uid == 0 || uid == a.uid) && !a.immutable && !a.append && !a.readOnly
}

// changeable returns which of a shim and the directories on the way to it a user could
// close. A closed directory does not stop root, who goes on to find the shim.
func changeable(uid uint32, path string, shim attributes, way []string) (could []string) {
	if shim.changedBy(uid) {
		could = append(could, path)
	}
	for _, dir := range way {
		if a, ok := attributesOf(dir); uid != 0 && ok && a.changedBy(uid) {
			could = append(could, dir)
		}
	}
	return could
}

// directoriesTo returns the directories that must be searched to reach a path, those on
// the way of symbolic links, too.
func directoriesTo(path string) (dirs []string) {
	ends := []string{path}
	if at, err := pathcheck.Resolve(pathcheck.OS{}, path); err == nil {
		ends = append([]string{at.Path}, at.Links...)
	}
	for _, end := range ends {
		for dir := pathcheck.Parent(end); !slices.Contains(dirs, dir); dir = pathcheck.Parent(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// String is for the table.
func (p protection) String() string {
	if len(p.By) == 0 {
		return "none"
	}
	return strings.NewReplacer(byMount, "read-only mount", byOwner, "another owner", byPlace, "in place (closed, not open)").Replace(strings.Join(p.By, ", "))
}

// warnOpen says once for each directory that a launch could take shims out of the way.
func warnOpen(v *voice.Caller, of []status) {
	open := make(map[string][]protection)
	var order []string
	for _, s := range of {
		if dir := pathcheck.Parent(s.Path); len(s.Protection.Changeable) > 0 {
			if open[dir] == nil {
				order = append(order, dir)
			}
			open[dir] = append(open[dir], s.Protection)
		}
	}
	for _, dir := range order {
		p := open[dir][0]
		var what []string
		for _, c := range p.Changeable {
			what = append(what, voice.Show(c))
		}
		more := ""
		if n := len(open[dir]) - 1; n > 0 {
			more = fmt.Sprintf(", and past %d more", n)
		}
		v.Warn(dir, "fails open: a launch of uid "+strings.Join(p.users, " or ")+" could change the mode of "+strings.Join(what, ", ")+
			"; PATH then leads past the shim"+more)
	}
}
