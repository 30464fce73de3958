/** runc, since crun takes no hybrid cgroups, and limits that any machine may set. */
export const podmanSettings = `[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
`
