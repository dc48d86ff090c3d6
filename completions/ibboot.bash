# Written from src/cli.rs; make docs renews it.
_ibboot() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words='' command='' one
    for one in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $one in status|plan|suggest|up|check|explain|facts|report|hardware-report|lease|timeline) command=$one ;; esac
    done
    case $command:$before in
        *:--root|*:--image|*:--output|*:--textfile|*:--tree)
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            return ;;
        plan:--format) words='text json' ;;
        suggest:--format) words='text line json' ;;
        check:--format) words='text json nagios prom nhc journal' ;;
        timeline:--format) words='text json svg' ;;
        explain:explain) words='module.live rdma.netns request.possible hca.device device.present device.answers port.link_layer port.netdev port.physical_state port.state port.lid port.sm_lid port.sa port.rate port.lanes port.speed hca.pcie ipoib.present ipoib.name ipoib.mode port.pkey ipoib.up ipoib.carrier ipoib.group bond.present bond.mode bond.slaves bond.options bond.carrier ipoib.mtu lease.present lease6.present address.present route.present server.rdma root.mounted root.transport root.path rd.ib rd.ib.link rd.ib.porttype rd.ib.roce rd.ib.netns rd.ib.mode rd.ib.mtu rd.ib.dhcp.client-id ib.pkey rd.ib.require rd.ib.rate rd.ib.probe rd.ib.timeout rd.ib.onfail rd.ib.handover rd.ib.kdump rd.driver.pre rd.driver.post rd.driver.blacklist rd.ib.async_probe rd.retry rd.timeout rd.neednet rd.debug rd.info ip ifname bond vlan bridge team bootdev BOOTIF rd.bootif nameserver rd.peerdns rd.route rd.net.timeout.carrier rd.net.timeout.iflink rd.net.timeout.ifup rd.net.timeout.route rd.net.timeout.ipv6dad rd.net.timeout.ipv6auto rd.net.timeout.dhcp rd.net.timeout.ip-required rd.net.dhcp.retry rd.net.dhcp.vendor-class rd.net.dhcp.dscp rd.net.dhcp.client-id root netroot nfsroot rd.iscsi.transport rd.iscsi.param rd.nvmf.discover rd.nonvmf selectors addresses' ;;
        status:*) words='--help --root --limit --verbose --version' ;;
        plan:*) words='--help --cmdline --image --format --requested --root --limit --verbose --version' ;;
        suggest:*) words='--help --format --root --limit --verbose --version' ;;
        up:*) words='--help --early --reserve --hand-over --dry-run --root --limit --verbose --version' ;;
        check:*) words='--help --format --cmdline --watch --all --sm --record --textfile --root --limit --verbose --version' ;;
        explain:*) words='--help --root --limit --verbose --version' ;;
        facts:*) words='--help --tree --root --limit --verbose --version' ;;
        report:*) words='--help --output --root --limit --verbose --version' ;;
        hardware-report:*) words='--help --disturb --rebind --output --root --limit --verbose --version' ;;
        lease:*) words='--help --root --limit --verbose --version' ;;
        timeline:*) words='--help --format --root --limit --verbose --version' ;;
        *) words='status plan suggest up check explain facts report hardware-report lease timeline --help --root --limit --verbose --version' ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _ibboot ibboot
