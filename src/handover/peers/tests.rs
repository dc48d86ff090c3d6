// SPDX-License-Identifier: MIT OR Apache-2.0

use crate::handover::peers::*;
use crate::inet::Address;
use crate::plan::{Inventory, plan};
use crate::system::root::Root;
use crate::verify::verify;
use crate::wish::expectation::Depth;

fn reserved(cmdline: &str) -> Vec<String> {
    let files = reserve(&Request::from_text(cmdline));
    files.into_iter().map(|file| body(&file)).collect()
}

fn body(file: &File) -> String {
    let text = file.text.strip_prefix(HEAD).unwrap();
    format!(
        "{}/{}/{} {:o}\n{text}",
        file.top, file.directory, file.name, file.mode
    )
}

/// The files for a machine whose tree is `tests/sys/TREES`, merged in this order.
fn handed(cmdline: &str, trees: &[&str], change: impl Fn(&mut Facts)) -> Vec<String> {
    let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys");
    let over = tempfile::tempdir().unwrap();
    for tree in trees {
        let copied = std::process::Command::new("cp")
            .args(["-aT", "--remove-destination"])
            .arg(sys.join(tree))
            .arg(over.path())
            .status();
        assert!(copied.unwrap().success());
    }
    let root = Root::new(over.path());
    let request = Request::from_text(cmdline);
    let expectation = plan(&request, &Inventory::read(&root).unwrap()).expectation;
    let mut facts = Facts::gather(&root, None, &[], Depth::All);
    change(&mut facts);
    let report = verify(&expectation, &facts);
    let to = request.handover.map_or(Handover::Auto, |to| to.value);
    let files = hand_over(to, &expectation, &report, &facts);
    files.iter().map(body).collect()
}

const MACHINE: [&str; 2] = ["connectx6-hdr", "ipoib-connected"];

fn with_address(facts: &mut Facts) {
    for netdev in facts.netdevs.iter_mut().filter(|n| n.ifname == "ib0") {
        netdev
            .addresses
            .push("10.0.0.1/24".parse::<Address>().unwrap().into());
    }
}

#[test]
fn every_infiniband_interface_is_reserved_except_those_left_to_others() {
    assert_eq!(
        reserved("ip=10.0.0.1:::255.255.255.0::ib0:none"),
        [
            "/run/NetworkManager/conf.d/90-ibboot.conf 644\n\
                 [device-ibboot]\nmatch-device=type:infiniband\nmanaged=0\n",
            "/etc/systemd/network/00-ibboot.network 644\n\
                 [Match]\nType=infiniband\n\n[Link]\nUnmanaged=yes\n",
            "/run/udev/rules.d/92-ibboot.rules 644\n\
                 SUBSYSTEM==\"net\", ATTR{type}==\"32\", ACTION==\"add|change|move\", RUN{builtin}=\"path_id\"\n"
        ]
    );
    assert_eq!(
        reserved("ip=10.0.0.1:::255.255.255.0::ib0:none ip=ib1:link-local ip=ib2:link-local"),
        [
            "/run/NetworkManager/conf.d/90-ibboot.conf 644\n\
                 [device-ibboot]\nmatch-device=type:infiniband;except:interface-name:=ib1;\
                 except:interface-name:=ib2\nmanaged=0\n",
            "/etc/systemd/network/00-ibboot.network 644\n\
                 [Match]\nType=infiniband\nName=!ib1 ib2\n\n[Link]\nUnmanaged=yes\n",
            "/run/udev/rules.d/92-ibboot.rules 644\n\
                 SUBSYSTEM==\"net\", ATTR{type}==\"32\", NAME!=\"ib1|ib2\", KERNEL!=\"ib1|ib2\", \
                 ACTION==\"add|change|move\", RUN{builtin}=\"path_id\"\n"
        ]
    );
    assert_eq!(reserved("rd.ib.mode=connected").len(), 3);
}

#[test]
fn an_interface_without_a_request_is_not_reserved() {
    for cmdline in [
        "ip=10.0.0.1:::255.255.255.0::eth0:none",
        "rd.ib.link=rxe0:rxe:eth0 ip=eth0:dhcp",
        "rd.ib=0 ip=10.0.0.1:::255.255.255.0::ib0:none",
        "ip=ib0:link-local",
        // Left to other programs, under a name that the files cannot express.
        "ip=10.0.0.1:::255.255.255.0::ib0:none ip=ib;type:link-local",
        "ip=10.0.0.1:::255.255.255.0::ib0:none ip=ib*:link-local",
    ] {
        assert_eq!(reserved(cmdline), [""; 0], "{cmdline}");
    }
}

/// Whether a step of the plan sets an interface up, and whether one gives addresses to one.
fn set_up(cmdline: &str) -> (bool, bool) {
    let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/connectx6-hdr");
    let inventory = Inventory::read(&Root::new(sys)).unwrap();
    let plan = plan(&Request::from_text(cmdline), &inventory);
    let links = plan.expectation.links.iter();
    let possible = links.filter(|link| link.refused.is_none());
    let wishes = possible.chain(&plan.expectation.any_port);
    let wishes = wishes.filter_map(|link| link.ipoib.as_ref());
    let wishes: Vec<bool> = wishes.map(|ipoib| ipoib.is_addressed()).collect();
    (!wishes.is_empty(), wishes.contains(&true))
}

#[test]
fn reserved_interfaces_are_set_up_and_those_that_others_address_are_not_reserved() {
    const NFS: &str = "root=nfs:10.0.0.1:/x";
    let dhcp = "ip=dhcp";
    for (cmdline, is_reserved) in [
        (
            format!("{NFS} {dhcp} rd.ib.mode=connected rd.neednet=1"),
            false,
        ),
        (format!("{NFS} {dhcp} rd.ib.mode=ib0:connected"), false),
        (format!("{NFS} rd.ib.mtu=max"), false),
        (format!("{NFS} ib.pkey=ib0.8001"), false),
        ("rd.neednet=1 rd.ib.mode=connected".to_owned(), false),
        (
            format!("{NFS} rd.ib.require=guid=0xb8599f0300fc1a2c rd.ib.mode=connected"),
            false,
        ),
        (
            format!("{NFS} {dhcp} rd.ib.mode=connected bootdev=ib0"),
            true,
        ),
        (format!("{NFS} {dhcp} ip=10.0.0.5:::24::ib0:none"), true),
        (
            format!("{NFS} bond=bond0:ib0,ib1:mode=802.3ad ip=bond0:dhcp"),
            false,
        ),
        (format!("{NFS} bootdev=ib0"), true),
        (format!("{NFS} BOOTIF=20-b8-59-9f-03-00-fc-1a-2c"), true),
    ] {
        assert_eq!(!reserved(&cmdline).is_empty(), is_reserved, "{cmdline}");
        let (_, is_addressed) = set_up(&cmdline);
        assert_eq!(is_addressed, is_reserved, "{cmdline}");
    }
    // No program needs a network, or the network is Ethernet: no address is missing.
    for cmdline in [
        "rd.ib.mode=connected",
        "root=/dev/sda1 bootdev=ib0",
        "root=nfs:10.0.0.1:/x ip=eth0:dhcp rd.ib.mode=connected rd.ib.require=2",
        "root=nfs:10.0.0.1:/x bootdev=eth0 rd.ib.mode=ib0:connected",
    ] {
        assert!(!reserved(cmdline).is_empty(), "{cmdline}");
        assert_eq!(set_up(cmdline), (true, false), "{cmdline}");
    }
}

#[test]
fn a_verified_interface_stays_as_it_is() {
    let cmdline = "ip=10.0.0.1:::255.255.255.0::ib0:none rd.ib.mode=connected";
    let kept = [
        "/run/NetworkManager/conf.d/90-ibboot.conf 644\n[device-ibboot]\n\
             match-device=mac:80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c\nmanaged=0\n",
        "/run/systemd/network/00-ibboot.network 644\n[Match]\nType=infiniband\nProperty=IBBOOT=1\n\n\
             [Link]\nUnmanaged=yes\n",
        // For systemd before 243, which knows no properties.
        "/run/systemd/network/00-ibboot-ib0.network 644\n[Match]\n\
             Type=infiniband\nName=ib0\nCredential=ibboot.none\n\n[Link]\nUnmanaged=yes\n",
        "/run/udev/rules.d/92-ibboot-links.rules 644\n\
             SUBSYSTEM==\"net\", ATTR{address}==\"*:b8:59:9f:03:00:fc:1a:2c\", ATTR{pkey}==\"0xffff\", \
             ENV{IBBOOT}=\"1\", ENV{IBBOOT_LINK}=\"ib0\"\n",
    ];
    assert_eq!(handed(cmdline, &MACHINE, with_address), kept);
    // Without its address the interface is not verified.
    assert_eq!(handed(cmdline, &MACHINE, |_| ()), [""; 0]);
    let keep = format!("{cmdline} rd.ib.handover=keep");
    assert_eq!(handed(&keep, &MACHINE, |_| ()), kept);
    let none = format!("{cmdline} rd.ib.handover=none");
    assert_eq!(handed(&none, &MACHINE, with_address), [""; 0]);
}

#[test]
fn a_profile_has_the_settings_of_the_interface() {
    let cmdline = "ip=10.0.0.1::10.0.0.254:255.255.255.0::ib0:none ip=[fd00::1/64]::::h:ib0:none \
                       rd.ib.mode=connected rd.ib.mtu=max";
    let files = handed(&format!("{cmdline} rd.ib.handover=nm"), &MACHINE, |_| ());
    assert_eq!(files.len(), 4);
    assert!(files[0].starts_with("/run/systemd/network/00-ibboot.network 644\n"));
    assert!(files[2].starts_with("/run/systemd/network/00-ibboot-ib0.network 644\n"));
    assert_eq!(
        files[1],
        "/run/NetworkManager/system-connections/10-ibboot-ib0.nmconnection 600\n\
             [connection]\nid=10-ibboot-ib0\ntype=infiniband\nautoconnect-priority=100\n\n\
             [infiniband]\nmac-address=80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c\n\
             transport-mode=connected\nmtu=65520\n\n\
             [ipv4]\nmethod=manual\naddress1=10.0.0.1/24\ngateway=10.0.0.254\n\n\
             [ipv6]\nmethod=manual\naddress1=fd00::1/64\n"
    );
    let files = handed(
        &format!("{cmdline} rd.ib.handover=networkd"),
        &MACHINE,
        |_| (),
    );
    assert!(files[0].starts_with("/run/NetworkManager/conf.d/90-ibboot.conf 644\n"));
    let settings = "\n[Link]\nMTUBytes=65520\n\n\
             [Network]\nKeepConfiguration=yes\nAddress=10.0.0.1/24\nAddress=fd00::1/64\n\
             Gateway=10.0.0.254\n\n[IPoIB]\nMode=connected\n";
    // The second one is for systemd before 243, which knows no properties.
    let profiles = [
        "10-ibboot-ib0.network 644\n[Match]\nType=infiniband\nProperty=IBBOOT_LINK=ib0\n",
        "11-ibboot-ib0.network 644\n[Match]\nType=infiniband\nName=ib0\nCredential=ibboot.none\n",
    ];
    let profiles = profiles.map(|head| format!("/run/systemd/network/{head}{settings}"));
    assert_eq!(files[1..3], profiles);
}

#[test]
fn an_interface_that_shares_its_guid_with_a_child_is_matched_by_name() {
    const CHILD: [&str; 3] = ["connectx6-hdr", "ipoib-connected", "ipoib-child"];
    let ips = "ip=10.0.0.1:::24::ib0:none ib.pkey=ib0.8001 ip=10.1.0.1:::24::ib0.8001:none";
    let files = handed(&format!("{ips} rd.ib.handover=nm"), &CHILD, |_| ());
    let named = |name: &str| {
        let mut files = files.iter();
        files.any(|file| file.contains(&format!("\ninterface-name={name}\n")))
    };
    assert!(named("ib0") && named("ib0.8001"), "{files:?}");
    let files = handed(&format!("{ips} rd.ib.handover=networkd"), &CHILD, |_| ());
    let names = files.iter().map(|file| file.split(' ').next().unwrap());
    let names = names.filter_map(|name| name.strip_prefix("/run/systemd/network/"));
    let expected = [
        "10-ibboot-ib0.network",
        "11-ibboot-ib0.network",
        "10-ibboot-ib0.8001.network",
        "11-ibboot-ib0.8001.network",
    ];
    assert_eq!(names.collect::<Vec<_>>(), expected);
}

#[test]
fn a_profile_has_the_name_servers_of_the_command_line() {
    const SERVERS: &str = "nameserver=10.0.0.3 nameserver=[fd00::3]";
    for (ip, nm, networkd) in [
        (
            "ip=10.0.0.1::10.0.0.254:24::ib0:none:10.0.0.2",
            "[ipv4]\nmethod=manual\naddress1=10.0.0.1/24\ngateway=10.0.0.254\ndns=10.0.0.2;10.0.0.3;\n\n\
             [ipv6]\nmethod=auto\ndns=fd00::3;\n",
            "Address=10.0.0.1/24\nGateway=10.0.0.254\nDNS=10.0.0.2\nDNS=10.0.0.3\nDNS=fd00::3\n\n",
        ),
        (
            "ip=ib0:dhcp",
            "[ipv4]\nmethod=auto\ndns=10.0.0.3;\n\n[ipv6]\nmethod=auto\ndns=fd00::3;\n",
            "DHCP=ipv4\nDNS=10.0.0.3\nDNS=fd00::3\n\n",
        ),
        (
            "ip=[fd00::1/64]::::h:ib0:none",
            "[ipv4]\nmethod=disabled\n\n[ipv6]\nmethod=manual\naddress1=fd00::1/64\ndns=fd00::3;\n",
            "Address=fd00::1/64\nDNS=10.0.0.3\nDNS=fd00::3\n\n",
        ),
    ] {
        let line = |to: &str| format!("{ip} {SERVERS} rd.ib.handover={to}");
        let files = handed(&line("nm"), &MACHINE, |_| ());
        assert!(files[1].ends_with(nm), "{files:?}");
        let files = handed(&line("networkd"), &MACHINE, |_| ());
        assert!(files[1].contains(networkd), "{files:?}");
    }
}

#[test]
fn a_leased_address_is_requested_again() {
    let cmdline = "ip=ib0:dhcp rd.ib.mode=connected";
    let files = handed(&format!("{cmdline} rd.ib.handover=nm"), &MACHINE, |_| ());
    assert!(
        files[1].ends_with("\n[ipv4]\nmethod=auto\n\n[ipv6]\nmethod=auto\n"),
        "{files:?}"
    );
    let networkd = format!("{cmdline} rd.ib.handover=networkd");
    let files = handed(&networkd, &MACHINE, |_| ());
    let network = "\n[Network]\nKeepConfiguration=static\nDHCP=ipv4\n\n[IPoIB]\n";
    assert!(files[1].contains(network), "{files:?}");
}

#[test]
fn the_next_owner_sends_and_ignores_what_the_boot_did() {
    let of = |cmdline: &str, to: &str| {
        let files = handed(&format!("{cmdline} rd.ib.handover={to}"), &MACHINE, |_| ());
        let tail = files[1].split_once("\n\n[ipv4]\n");
        let tail = tail.or_else(|| files[1].split_once("\n\n[Network]\n"));
        tail.unwrap().1.to_owned()
    };
    let all = "ip=::::h1:ib0:dhcp rd.net.dhcp.vendor-class=foo rd.peerdns=0";
    assert_eq!(
        of(all, "nm"),
        "method=auto\nignore-auto-dns=true\ndhcp-vendor-class-identifier=foo\n\
             dhcp-hostname=h1\n\n[ipv6]\nmethod=auto\nignore-auto-dns=true\n"
    );
    assert_eq!(
        of(all, "networkd"),
        "KeepConfiguration=static\nDHCP=ipv4\n\n\
             [DHCPv4]\nVendorClassIdentifier=foo\nHostname=h1\nUseDNS=no\n\n\
             [DHCPv6]\nUseDNS=no\n\n[IPv6AcceptRA]\nUseDNS=no\n\n[IPoIB]\nMode=connected\n"
    );
    // DHCPv6 sends neither.
    let six = "ip=::::h1:ib0:dhcp6 rd.net.dhcp.vendor-class=foo";
    assert_eq!(of(six, "nm"), of("ip=ib0:dhcp6", "nm"));
    assert_eq!(of(six, "networkd"), of("ip=ib0:dhcp6", "networkd"));
    for (cmdline, is_ignored) in [
        ("ip=ib0:auto6 rd.peerdns=0", true),
        ("ip=ib0:either6 rd.peerdns=0", true),
        ("ip=ib0:auto6", false),
        ("ip=ib0:dhcp rd.peerdns=1", false),
    ] {
        let (nm, networkd) = (of(cmdline, "nm"), of(cmdline, "networkd"));
        assert_eq!(nm.contains("ignore-auto-dns=true\n"), is_ignored, "{nm}");
        assert_eq!(networkd.contains("UseDNS=no\n"), is_ignored, "{networkd}");
    }
    // A value that could mean something else in these files is left out.
    for class in ["a\tb", "a\\b", "\u{e9}"] {
        let cmdline = format!("ip=ib0:dhcp \"rd.net.dhcp.vendor-class={class}\"");
        let expected = of("ip=ib0:dhcp", "nm");
        assert_eq!(of(&cmdline, "nm"), expected, "{class:?}");
    }
}

#[test]
fn an_interface_with_a_link_local_address_listens_to_no_router() {
    let of = |to: &str| {
        let cmdline = format!("ip=ib0:link6 nameserver=fd00::53 rd.ib.handover={to}");
        handed(&cmdline, &MACHINE, |_| ()).join("\n")
    };
    let nm = of("nm");
    assert!(nm.contains("\n[ipv6]\nmethod=link-local\n\n"), "{nm}");
    let networkd = of("networkd");
    assert!(networkd.contains("\nIPv6AcceptRA=no\n"), "{networkd}");
}

#[test]
fn an_address_under_a_root_file_system_outlives_its_lease() {
    let cmdline = "ip=ib0:dhcp root=nfs:10.0.0.2:/root";
    let files = handed(&format!("{cmdline} rd.ib.handover=nm"), &MACHINE, |_| ());
    let ends = "\n[ipv4]\nmethod=auto\ndhcp-timeout=2147483647\n\n[ipv6]\nmethod=auto\n";
    assert!(files[1].ends_with(ends), "{files:?}");
    let networkd = format!("{cmdline} rd.ib.handover=networkd");
    let files = handed(&networkd, &MACHINE, |_| ());
    let network = "\n[Network]\nKeepConfiguration=yes\nDHCP=ipv4\n";
    assert!(files[1].contains(network), "{files:?}");
}

#[test]
fn network_manager_gets_a_gateway_only_beside_an_address() {
    for (cmdline, ends) in [
        (
            "ip=ib0:dhcp rd.route=0.0.0.0/0:10.0.0.9:ib0 rd.route=10.9.0.0/16:10.0.0.8:ib0",
            "[ipv4]\nmethod=auto\nroute1=10.9.0.0/16,10.0.0.8\nroute2=0.0.0.0/0,10.0.0.9\n\n\
             [ipv6]\nmethod=auto\n",
        ),
        (
            "ip=10.0.0.1::10.0.0.254:24::ib0:none rd.route=0.0.0.0/0:10.0.0.9:ib0 \
             rd.route=[::]/0:[fe80::1]:ib0",
            "[ipv4]\nmethod=manual\naddress1=10.0.0.1/24\ngateway=10.0.0.254\n\
             route1=0.0.0.0/0,10.0.0.9\n\n[ipv6]\nmethod=auto\nroute1=::/0,fe80::1\n",
        ),
    ] {
        let files = handed(&format!("{cmdline} rd.ib.handover=nm"), &MACHINE, |_| ());
        assert!(files[1].ends_with(ends), "{files:?}");
    }
}

#[test]
fn the_next_owner_sends_the_identifiers_that_the_server_knows() {
    let rfc4361 = "ff:00:00:00:07:00:02:00:00:02:c9:b8:59:9f:03:00:fc:1a:2c";
    let duid = "DUIDType=vendor\nDUIDRawData=00:00:02:c9:b8:59:9f:03:00:fc:1a:2c\n";
    for (client_id, expected) in [
        (
            rfc4361,
            format!("\n[DHCPv4]\nClientIdentifier=duid\nIAID=7\n{duid}"),
        ),
        (
            "20:b8:59:9f:03:00:fc:1a:2c",
            "\n[DHCPv4]\nClientIdentifier=mac\n".to_owned(),
        ),
        // The GUID of a card that is gone.
        ("20:b8:59:9f:03:00:aa:aa:aa", String::new()),
        // networkd cannot send such an identifier: `ibboot plan` warns.
        ("01:02", String::new()),
    ] {
        let granted = |facts: &mut Facts| {
            facts.dhcp.push(v4::progress::Progress {
                interface: "ib0".to_owned(),
                client_id: client_id.to_owned(),
                ..v4::progress::Progress::default()
            });
            facts.dhcp6.push(v6::progress::Progress {
                interface: "ib0".to_owned(),
                duid: rfc4361.replace("ff:00:00:00:07:", ""),
                iaid: 7,
                ..v6::progress::Progress::default()
            });
        };
        let cmdline = "ip=ib0:dhcp rd.ib.mode=connected rd.route=10.9.1.7/16:10.0.0.9:ib0";
        let files = handed(&format!("{cmdline} rd.ib.handover=nm"), &MACHINE, granted);
        let ends = format!(
            "\n[ipv4]\nmethod=auto\nroute1=10.9.0.0/16,10.0.0.9\ndhcp-client-id={client_id}\n\n\
             [ipv6]\nmethod=auto\ndhcp-duid={}\ndhcp-iaid=7\n",
            rfc4361.replace("ff:00:00:00:07:", "")
        );
        assert!(files[1].ends_with(&ends), "{files:?}");
        let networkd = format!("{cmdline} rd.ib.handover=networkd");
        let files = handed(&networkd, &MACHINE, granted);
        let sections = format!(
            "\n[Route]\nDestination=10.9.0.0/16\nGateway=10.0.0.9\n{expected}\n\
             [DHCPv6]\nWithoutRA=solicit\nIAID=7\n{duid}\n[IPoIB]\n"
        );
        assert!(files[1].contains(&sections), "{files:?}");
    }
}

#[test]
fn networkd_sends_the_duid_of_the_hardware_and_solicits_with_any_duid() {
    for (duid, expected) in [
        (
            "00:03:00:20:b8:59:9f:03:00:fc:1a:2c",
            "DUIDType=link-layer\nDUIDRawData=00:20:b8:59:9f:03:00:fc:1a:2c\n",
        ),
        ("00:05:aa", ""),
    ] {
        let granted = |facts: &mut Facts| {
            facts.dhcp6.push(v6::progress::Progress {
                interface: "ib0".to_owned(),
                duid: duid.to_owned(),
                iaid: 65535,
                ..v6::progress::Progress::default()
            });
        };
        let cmdline = "ip=ib0:dhcp6 ip=[fd00::1/64]::::h:ib0:none";
        let networkd = format!("{cmdline} rd.ib.handover=networkd");
        let files = handed(&networkd, &MACHINE, granted);
        let section = format!("\n[DHCPv6]\nWithoutRA=solicit\nIAID=65535\n{expected}\n[IPoIB]\n");
        assert!(files[1].contains(&section), "{files:?}");
        let files = handed(&format!("{cmdline} rd.ib.handover=nm"), &MACHINE, granted);
        let section = "\n[ipv6]\nmethod=auto\naddress1=fd00::1/64\n";
        assert!(files[1].contains(section), "{files:?}");
    }
}

#[test]
fn networkd_sends_the_guid_of_a_bond_only_while_that_port_carries_its_traffic() {
    for (guid, is_sent) in [
        ("b8:59:9f:03:00:fc:1a:2c", true),
        ("b8:59:9f:03:00:fc:1a:2d", false),
    ] {
        let granted = |facts: &mut Facts| {
            facts.dhcp.push(v4::progress::Progress {
                interface: "bond0".to_owned(),
                client_id: format!("20:{guid}"),
                ..v4::progress::Progress::default()
            });
        };
        let cmdline = "bond=bond0:ib0,ib1 ip=bond0:dhcp rd.ib.handover=networkd";
        let files = handed(cmdline, &BONDED, granted);
        let network = files.iter().find(|file| file.contains("DHCP=ipv4\n"));
        let network = network.unwrap();
        assert_eq!(network.contains("ClientIdentifier=mac\n"), is_sent);
    }
}

#[test]
fn a_hostile_name_gets_no_profile() {
    let cmdline = "ip=10.0.0.1:::255.255.255.0::ib0:none rd.ib.mode=connected";
    for name in [
        "ib\nx=y", "ib]0", "ib;0", "ib*", "ib%i", "-ib0", "..", "ib'0",
    ] {
        let rename = |facts: &mut Facts| {
            for netdev in facts.netdevs.iter_mut().filter(|n| n.ifname == "ib0") {
                netdev.ifname = name.to_owned();
            }
        };
        for to in ["nm", "networkd"] {
            let cmdline = format!("{} rd.ib.handover={to}", cmdline.replace("ib0", "guid"));
            // Select the interface by its GUID, so that its name does not come from the command
            // line.
            let cmdline = cmdline.replace(":guid:", ":b8-59-9f-03-00-fc-1a-2c:");
            let files = handed(&cmdline, &MACHINE, rename);
            assert_eq!(files.len(), 2, "{name:?} {files:?}");
            let hands_off = match to {
                "nm" => {
                    "/run/systemd/network/00-ibboot.network 644\n[Match]\nType=infiniband\nProperty=IBBOOT=1\n"
                }
                _ => {
                    "match-device=mac:80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c\n"
                }
            };
            assert!(files[0].contains(hands_off), "{files:?}");
            assert_eq!(
                files[1],
                "/run/udev/rules.d/92-ibboot-links.rules 644\n\
                 SUBSYSTEM==\"net\", ATTR{address}==\"*:b8:59:9f:03:00:fc:1a:2c\", ATTR{pkey}==\"0xffff\", \
                 ENV{IBBOOT}=\"1\"\n"
            );
        }
    }
}

#[test]
fn an_interface_without_an_address_of_ours_is_the_real_roots() {
    const CHILD: [&str; 3] = ["connectx6-hdr", "ipoib-connected", "ipoib-child"];
    let with_all = |facts: &mut Facts| {
        with_address(facts);
        for netdev in &mut facts.netdevs {
            if netdev.ipoib.as_ref().is_some_and(|ipoib| ipoib.child) {
                let address = "10.1.0.1/24".parse::<Address>().unwrap();
                netdev.addresses.push(address.into());
            }
        }
    };
    let child = "ib.pkey=ib0.8001 ip=10.1.0.1:::24::ib0.8001:none";
    for (cmdline, trees, taken) in [
        ("rd.ib.mode=connected", &MACHINE[..], 0),
        (
            "root=nfs:10.0.0.1:/x ip=dhcp rd.ib.mode=connected",
            &MACHINE,
            0,
        ),
        (
            "ip=10.0.0.1:::24::ib0:none rd.ib.mode=connected",
            &MACHINE,
            1,
        ),
        ("ifname=ib0:b8:59:9f:03:00:fc:1a:2c", &MACHINE, 0),
        ("ib.pkey=ib0.8001", &CHILD, 0),
        // The parent is taken for the sake of its child.
        (child, &CHILD, 2),
    ] {
        let addresses = |cmdline: &str| {
            let files = handed(cmdline, trees, with_all);
            files.first().map_or(0, |file| file.matches("mac:").count())
        };
        assert_eq!(addresses(cmdline), taken, "{cmdline}");
        let keep = addresses(&format!("{cmdline} rd.ib.handover=keep"));
        assert!(keep > 0, "{cmdline}");
    }
}

#[test]
fn only_generated_profiles_of_our_interfaces_are_removed() {
    let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/connectx6-hdr");
    let root = Root::new(sys);
    let is_removed = |cmdline: &str, to: Handover, kind: &str, what: &str, origin: &str| {
        let request = Request::from_text(cmdline);
        let expectation = plan(&request, &Inventory::read(&root).unwrap()).expectation;
        let mut facts = Facts::gather(&root, None, &[], Depth::All);
        with_address(&mut facts);
        let report = verify(&expectation, &facts);
        let text = format!(
            "[connection]\nid=x\ntype={kind}\n{what}\n\n[user]\n\
                 org.freedesktop.NetworkManager.origin={origin}\n"
        );
        is_generated_for(&text, &taken(to, &expectation, &report, &facts))
    };
    let addressed = "ip=10.0.0.1:::255.255.255.0::ib0:none";
    let profile = |kind, what, origin| is_removed(addressed, Handover::Auto, kind, what, origin);
    let generator = "nm-initrd-generator";
    let ib0 = "interface-name=ib0";
    assert!(profile("infiniband", ib0, generator));
    let mac = "mac-address=80:00:00:00:fe:80:00:00:00:00:00:00:B8:59:9F:03:00:FC:1A:2C";
    assert!(profile("infiniband", mac, generator));
    assert!(!profile("infiniband", "interface-name=ib1", generator));
    assert!(!profile("infiniband", ib0, "site"));
    assert!(profile("bond", ib0, generator));
    // An interface of the real root keeps its profile.
    for (cmdline, to, removed) in [
        (addressed, Handover::None, false),
        ("rd.ib.mode=ib0:datagram", Handover::Auto, false),
        ("rd.ib.mode=ib0:datagram", Handover::Nm, true),
    ] {
        assert_eq!(
            is_removed(cmdline, to, "infiniband", ib0, generator),
            removed
        );
    }
}

const BOND: &str = "bond=bond0:ib0,ib1:miimon=50,arp_ip_target=10.0.0.2;10.0.0.3 \
                        ip=10.0.0.1:::255.255.255.0::bond0:none";
const BONDED: [&str; 3] = ["connectx6-hdr", "bonding-driver", "bond"];

fn bonded(facts: &mut Facts) {
    for netdev in facts.netdevs.iter_mut().filter(|n| n.ifname == "bond0") {
        netdev
            .addresses
            .push("10.0.0.1/24".parse::<Address>().unwrap().into());
    }
    // A port without cable: the bond is verified nevertheless.
    for netdev in facts.netdevs.iter_mut().filter(|n| n.ifname == "ib1") {
        netdev.carrier = Some(false);
    }
}

#[test]
fn a_bond_is_matched_by_name_and_its_slaves_with_it() {
    assert_eq!(
        reserved(BOND),
        [
            "/run/NetworkManager/conf.d/90-ibboot.conf 644\n[device-ibboot]\n\
                 match-device=type:infiniband;interface-name:=bond0\nmanaged=0\n",
            "/etc/systemd/network/00-ibboot.network 644\n\
                 [Match]\nType=infiniband\n\n[Link]\nUnmanaged=yes\n",
            "/etc/systemd/network/00-ibboot-bond0.network 644\n\
                 [Match]\nName=bond0\n\n[Link]\nUnmanaged=yes\n",
            "/run/udev/rules.d/92-ibboot.rules 644\n\
                 SUBSYSTEM==\"net\", ATTR{type}==\"32\", ACTION==\"add|change|move\", RUN{builtin}=\"path_id\"\n\
                 SUBSYSTEM==\"net\", KERNEL==\"bond0\", ACTION==\"add|change|move\", RUN{builtin}=\"path_id\"\n"
        ]
    );
    assert_eq!(
        handed(BOND, &BONDED, bonded),
        [
            "/run/NetworkManager/conf.d/90-ibboot.conf 644\n[device-ibboot]\n\
                 match-device=mac:80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c;\
                 mac:80:00:00:49:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2d;\
                 interface-name:=bond0\nmanaged=0\n",
            "/run/systemd/network/00-ibboot.network 644\n[Match]\nType=infiniband\nProperty=IBBOOT=1\n\n\
                 [Link]\nUnmanaged=yes\n",
            "/run/systemd/network/00-ibboot-bond0.network 644\n\
                 [Match]\nName=bond0\n\n[Link]\nUnmanaged=yes\n",
            "/run/systemd/network/00-ibboot-ib0.network 644\n[Match]\n\
                 Type=infiniband\nName=ib0\nCredential=ibboot.none\n\n[Link]\nUnmanaged=yes\n",
            "/run/systemd/network/00-ibboot-ib1.network 644\n[Match]\n\
                 Type=infiniband\nName=ib1\nCredential=ibboot.none\n\n[Link]\nUnmanaged=yes\n",
            "/run/udev/rules.d/92-ibboot-links.rules 644\n\
                 SUBSYSTEM==\"net\", ATTR{address}==\"*:b8:59:9f:03:00:fc:1a:2c\", ATTR{pkey}==\"0xffff\", \
                 ENV{IBBOOT}=\"1\", ENV{IBBOOT_LINK}=\"ib0\"\n\
                 SUBSYSTEM==\"net\", ATTR{address}==\"*:b8:59:9f:03:00:fc:1a:2d\", ATTR{pkey}==\"0xffff\", \
                 ENV{IBBOOT}=\"1\", ENV{IBBOOT_LINK}=\"ib1\"\n"
        ]
    );
}

#[test]
fn a_bond_has_a_profile_and_each_of_its_interfaces_one() {
    let files = handed(&format!("{BOND} rd.ib.handover=nm"), &BONDED, bonded);
    assert_eq!(
        files[2..5],
        [
            "/run/NetworkManager/system-connections/10-ibboot-ib0.nmconnection 600\n\
                 [connection]\nid=10-ibboot-ib0\ntype=infiniband\n\
                 autoconnect-priority=100\nmaster=bond0\nslave-type=bond\n\n[infiniband]\n\
                 mac-address=80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c\ntransport-mode=datagram\n",
            "/run/NetworkManager/system-connections/10-ibboot-ib1.nmconnection 600\n\
                 [connection]\nid=10-ibboot-ib1\ntype=infiniband\n\
                 autoconnect-priority=100\nmaster=bond0\nslave-type=bond\n\n[infiniband]\n\
                 mac-address=80:00:00:49:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2d\ntransport-mode=datagram\n",
            "/run/NetworkManager/system-connections/10-ibboot-bond0.nmconnection 600\n\
                 [connection]\nid=10-ibboot-bond0\ntype=bond\ninterface-name=bond0\n\
                 autoconnect-priority=100\nautoconnect-slaves=1\n\n\
                 [bond]\nmode=active-backup\nmiimon=50\narp_ip_target=10.0.0.2,10.0.0.3\n\n\
                 [ipv4]\nmethod=manual\naddress1=10.0.0.1/24\n\n[ipv6]\nmethod=auto\n"
        ]
    );
    let files = handed(&format!("{BOND} rd.ib.handover=networkd"), &BONDED, bonded);
    assert_eq!(
        files[1..7],
        [
            "/run/systemd/network/10-ibboot-ib0.network 644\n[Match]\nType=infiniband\nProperty=IBBOOT_LINK=ib0\n\n\
                 [Network]\nBond=bond0\n\n[IPoIB]\nMode=datagram\n",
            "/run/systemd/network/11-ibboot-ib0.network 644\n[Match]\nType=infiniband\nName=ib0\nCredential=ibboot.none\n\n\
                 [Network]\nBond=bond0\n\n[IPoIB]\nMode=datagram\n",
            "/run/systemd/network/10-ibboot-ib1.network 644\n[Match]\nType=infiniband\nProperty=IBBOOT_LINK=ib1\n\n\
                 [Network]\nBond=bond0\n\n[IPoIB]\nMode=datagram\n",
            "/run/systemd/network/11-ibboot-ib1.network 644\n[Match]\nType=infiniband\nName=ib1\nCredential=ibboot.none\n\n\
                 [Network]\nBond=bond0\n\n[IPoIB]\nMode=datagram\n",
            "/run/systemd/network/10-ibboot-bond0.netdev 644\n[NetDev]\nName=bond0\nKind=bond\n\n\
                 [Bond]\nMode=active-backup\nMIIMonitorSec=50ms\n",
            "/run/systemd/network/10-ibboot-bond0.network 644\n[Match]\nName=bond0\n\n\
                 [Network]\nKeepConfiguration=yes\nAddress=10.0.0.1/24\n"
        ]
    );
}

#[test]
fn an_interface_with_another_gid_of_its_port_is_marked_by_its_address() {
    let alias = |facts: &mut Facts| {
        with_address(facts);
        for netdev in facts.netdevs.iter_mut().filter(|n| n.ifname == "ib0") {
            netdev.alias_of = netdev.port_guid();
            let address = "80:00:00:48:fe:80:00:00:00:00:00:00:02:00:00:00:00:00:00:07";
            netdev.address = address.parse().ok();
        }
    };
    let cmdline = "ip=10.0.0.1:::255.255.255.0::ib0:none rd.ib.mode=connected rd.ib.handover=keep";
    let files = handed(cmdline, &MACHINE, alias);
    let rules = files.iter().find(|file| file.contains("ENV{IBBOOT}"));
    assert!(
        rules.unwrap().contains("\"*:02:00:00:00:00:00:00:07\""),
        "{files:?}"
    );
}
