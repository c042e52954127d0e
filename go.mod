module github.com/sandbox-exec-shim/sandbox-exec-shim

go 1.26
