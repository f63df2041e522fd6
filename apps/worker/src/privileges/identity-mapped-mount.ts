/**
 * A Perl program, `<path> <owner> <user>`. In its mount namespace, it replaces the mount at a path by a mount in which
 * the files of `owner` appear as files of `user`. Files that `user` creates there are owned by `owner` on disk. It uses
 * Perl, because neither Node.js nor util-linux before 2.39 can make the system calls open_tree (428), mount_setattr
 * (442) and move_mount (429). Exits with a non-zero code if the kernel or the file system does not support such mounts.
 */
export const IDENTITY_MAPPED_MOUNT = `
use strict;
my ($path, $owner, $user) = @ARGV;
my $namespace = readlink "/proc/self/ns/user";
my $child = fork // die;
exec "unshare", "--user", "--", "sleep", "60" unless $child;
END { if ($child) { my $status = $?; kill 9, $child; waitpid $child, 0; $? = $status } }
for (my $tries = 0; (readlink("/proc/$child/ns/user") // $namespace) eq $namespace; $tries++) { die "no user namespace" if $tries > 2000; select undef, undef, undef, 0.005 }
for my $map ("uid_map", "gid_map") { open my $file, ">", "/proc/$child/$map" or die; syswrite $file, "$owner $user 1\\n" or die; close $file }
open my $users, "<", "/proc/$child/ns/user" or die;
my $tree = syscall 428, -100, $path, 0x8001;
die "open_tree" if $tree < 0;
my ($empty, $attributes) = ("", pack "Q4", 0x100000, 0, 0, fileno $users);
syscall(442, $tree, $empty, 0x1000, $attributes, length $attributes) == 0 or die "mount_setattr";
syscall(429, $tree, $empty, -100, $path, 4) == 0 or die "move_mount";
`;
