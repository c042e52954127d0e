package pathcheck

import "strings"

// Within reports whether path is dir or lies beneath it, by component:
// "/ws-evil" is not within "/ws". Both must be absolute and clean; symlinks
// are not looked at.
func Within(dir, path string) bool {
	return path == dir || Beneath(dir, path)
}

// Beneath reports whether path lies strictly beneath dir. Both must be
// absolute and clean; symlinks are not looked at.
func Beneath(dir, path string) bool {
	if dir == "/" {
		return len(path) > 1 && path[0] == '/'
	}
	return len(path) > len(dir) && path[len(dir)] == '/' && strings.HasPrefix(path, dir)
}

// Join appends the components rel ("" or "a/b") to the absolute clean path dir.
func Join(dir, rel string) string {
	switch {
	case rel == "":
		return dir
	case dir == "/":
		return "/" + rel
	default:
		return dir + "/" + rel
	}
}

// Rel returns the components of path below dir, "" for dir itself. It must
// only be called when [Within] holds.
func Rel(dir, path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, dir), "/")
}

// Parent returns the directory above an absolute clean path; that of "/" is "/".
func Parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/"
	}
	return path[:i]
}

// Absolute puts a relative path behind the absolute clean directory dir; it is ""
// if dir is. An absolute path is returned as it is.
func Absolute(dir, path string) string {
	switch {
	case len(path) > 0 && path[0] == '/':
		return path
	case dir == "":
		return ""
	default:
		return Join(dir, path)
	}
}
