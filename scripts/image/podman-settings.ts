/** runc is used because crun does not support hybrid cgroups. The limits are ones that any machine may set. */
export const podmanSettings = `[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
`
