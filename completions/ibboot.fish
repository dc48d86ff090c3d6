# Written from src/cli.rs; make docs renews it.
complete -c ibboot -f
complete -c ibboot -l root -r -F
complete -c ibboot -l limit -x
complete -c ibboot -l verbose -s v
complete -c ibboot -l help -s h
complete -c ibboot -l version -s V
complete -c ibboot -n __fish_use_subcommand -a status -d 'Show a row for each port, the failures first; the command if none is given.'
complete -c ibboot -n __fish_use_subcommand -a plan -d 'Show the steps that the kernel command line requests, and what is refused on this machine.'
complete -c ibboot -n '__fish_seen_subcommand_from plan' -l cmdline -r -F -d 'use this command line instead of the machine\'s'
complete -c ibboot -n '__fish_seen_subcommand_from plan' -l format -x -a 'text json' -d 'text (default) or json'
complete -c ibboot -n '__fish_seen_subcommand_from plan' -l asked -d 'print nothing; exit 0 if something is requested, 2 if not; in an initramfs also write /run/ibboot/asked (dracut\'s cmdline hook)'
complete -c ibboot -n __fish_use_subcommand -a up -d 'Carry out the plan: load, create, wait, verify, hand over. Safe to repeat.'
complete -c ibboot -n '__fish_seen_subcommand_from up' -l early -d 'in an initramfs, load the drivers at once and do the rest when dracut\'s cmdline hooks have ended (ibboot.service)'
complete -c ibboot -n '__fish_seen_subcommand_from up' -l claim -d 'only tell the network modules of the initramfs to leave the interfaces, and a root file system over them, alone (dracut\'s cmdline hook)'
complete -c ibboot -n '__fish_seen_subcommand_from up' -l hand-over -d 'only tell the network programs of the real root what rd.ib.handover= requests (dracut\'s cleanup hook)'
complete -c ibboot -n '__fish_seen_subcommand_from up' -l dry-run -d 'only print the next changes, one a line; works on a saved machine too (--root)'
complete -c ibboot -n __fish_use_subcommand -a check -d 'Compare the machine with what was handed over, or with what the command line requests.'
complete -c ibboot -n '__fish_seen_subcommand_from check' -l format -x -a 'text json nagios prom nhc journal' -d 'text (default), json, nagios, prom, nhc or journal'
complete -c ibboot -n '__fish_seen_subcommand_from check' -l cmdline -r -F -d 'compare with this command line instead of the handover'
complete -c ibboot -n '__fish_seen_subcommand_from check' -l watch -d 'repeat the check every 2 s, until interrupted'
complete -c ibboot -n '__fish_seen_subcommand_from check' -l all -d 'text: every check of every link, not only failures and warnings'
complete -c ibboot -n '__fish_seen_subcommand_from check' -l sm -d 'also query the subnet managers of ports that work'
complete -c ibboot -n '__fish_seen_subcommand_from check' -l record -d 'keep the first report after boot in /run/ibboot/check.json, for the timeline'
complete -c ibboot -n '__fish_seen_subcommand_from check' -l textfile -r -F -d 'also write the output of --format prom to this file, in one step'
complete -c ibboot -n __fish_use_subcommand -a explain -d 'Explain a check or a kernel argument: what it means, causes of a failure, and commands.'
complete -c ibboot -n __fish_use_subcommand -a facts -d 'Print the RDMA state of this machine as JSON.'
complete -c ibboot -n '__fish_seen_subcommand_from facts' -l tree -r -F -d 'also save every file that was read in this new directory, for a bug report and as a tree for --root'
complete -c ibboot -n __fish_use_subcommand -a report -d 'Save the state of this machine in a tar archive without secrets, for a bug report.'
complete -c ibboot -n '__fish_seen_subcommand_from report' -l output -r -F -d 'the archive, a new file; default ibboot-report.tar'
complete -c ibboot -n __fish_use_subcommand -a hardware-report -d 'Test what ibboot assumes about the RDMA hardware, one line for each claim, and save the results in a tar archive without secrets.'
complete -c ibboot -n '__fish_seen_subcommand_from hardware-report' -l disturb -r -F -d 'also set the interfaces of this unused port (mlx5_0/1) down and up and record the events'
complete -c ibboot -n '__fish_seen_subcommand_from hardware-report' -l rebind -d 'with --disturb: also unbind and bind the driver of the port'
complete -c ibboot -n '__fish_seen_subcommand_from hardware-report' -l output -r -F -d 'the archive, a new file; default ibboot-hardware-report.tar'
complete -c ibboot -n __fish_use_subcommand -a lease -d 'Keep the DHCP leases of the initramfs: renew them until stopped (ibboot-lease.service).'
complete -c ibboot -n __fish_use_subcommand -a timeline -d 'Show where the boot time went.'
complete -c ibboot -n '__fish_seen_subcommand_from timeline' -l format -x -a 'text json svg' -d 'text (default), json or svg'
complete -c ibboot -n '__fish_seen_subcommand_from explain' -a 'module.live rdma.netns wish.possible hca.device device.present device.answers port.link_layer port.netdev port.physical_state port.state port.lid port.sm_lid port.sa port.rate port.lanes port.speed hca.pcie ipoib.present ipoib.name ipoib.mode port.pkey ipoib.up ipoib.carrier bond.present bond.mode bond.slaves bond.options bond.carrier ipoib.mtu lease.present lease6.present address.present route.present server.rdma root.mounted root.transport root.path rd.ib rd.ib.link rd.ib.porttype rd.ib.roce rd.ib.netns rd.ib.mode rd.ib.mtu rd.ib.dhcp.client-id ib.pkey rd.ib.require rd.ib.rate rd.ib.probe rd.ib.timeout rd.ib.onfail rd.ib.handover rd.ib.kdump rd.driver.pre rd.driver.post rd.driver.blacklist rd.ib.async_probe rd.retry rd.timeout rd.neednet rd.debug rd.info ip ifname bond vlan bridge team bootdev BOOTIF rd.bootif nameserver rd.peerdns rd.route rd.net.timeout.carrier rd.net.timeout.iflink rd.net.timeout.ifup rd.net.timeout.route rd.net.timeout.ipv6dad rd.net.timeout.ipv6auto rd.net.timeout.dhcp rd.net.timeout.ip-required rd.net.dhcp.retry rd.net.dhcp.vendor-class rd.net.dhcp.dscp rd.net.dhcp.client-id root netroot rd.iscsi.transport rd.iscsi.param rd.nvmf.discover'
