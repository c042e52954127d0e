package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// workspace is the table of launches that may write in a workspace, the temp
// directory and the usual caches, read everything, and reach no network.
func (s *stage) workspace(w io.Writer, spawns int) error {
	program := s.targets[0]
	home := filepath.Join(s.dir, "home")
	ws, tmp := filepath.Join(s.dir, "ws"), filepath.Join(s.dir, "tmp")
	writable := []string{ws, tmp, filepath.Join(home, ".cache"), filepath.Join(home, "go/pkg")}
	for _, dir := range writable {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	env := []string{"HOME=" + home, "TMPDIR=" + tmp, "PATH=/usr/bin:/bin"}
	variants := []variant{
		{name: "the program itself", path: program.path, argv: []string{program.name}, env: env},
		{
			name: "through the shim", path: program.shim, argv: []string{program.name},
			env: append(env[:len(env):len(env)], `SANDBOX_EXEC_SHIM_POLICY={"version":1,"scope":"workspace","workspace":"`+ws+`","network":"deny"}`),
		},
	}
	if s.bwrap != "" {
		// Nothing that bwrap could do without: /dev and /proc stay those of
		// the system, which the shim's policy leaves readable, too.
		args := []string{"bwrap", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev"}
		for _, dir := range writable {
			args = append(args, "--bind", dir, dir)
		}
		variants = append(variants, variant{
			name: "through bwrap", path: s.bwrap, argv: append(args, "--unshare-net", program.path), env: env,
		})
	}
	times, err := interleave(variants, spawns)
	if err != nil {
		return err
	}
	t := table{title: fmt.Sprintf("writes in a workspace, network denied, %d spawns each", spawns)}
	direct := median(times[0])
	for i, v := range variants {
		row := rowOf(v.name, times[i], direct)
		if i == 2 {
			row.note = fmt.Sprintf("the shim adds %.2f of what it adds", float64(median(times[1])-direct)/float64(median(times[2])-direct))
		}
		t.rows = append(t.rows, row)
	}
	return t.print(w)
}
