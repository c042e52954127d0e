package command

import "github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"

func resolve(path string) (string, error) {
	loc, err := pathcheck.Resolve(pathcheck.OS{}, path)
	return loc.Path, err
}
