// SPDX-License-Identifier: GPL-2.0-only
/*
 * HCAs whose link layer is Ethernet: each port has a network interface, whose state
 * the port follows as RoCE does.  No frame leaves it.
 */
#include <linux/etherdevice.h>
#include "softib.h"

#define ETHER_GIDS 32

static char *link_layer[SIB_MAX_HCAS] = { "infiniband" };
static unsigned int link_layer_count;
module_param_array(link_layer, charp, &link_layer_count, 0444);
MODULE_PARM_DESC(link_layer, "link layer of each HCA: infiniband, ethernet");

struct ether_priv {
	struct sib_port	*port;
};

int sib_ether_init(struct sib_hca *hca)
{
	const char *name = link_layer[sib_list_index(hca, link_layer_count)];

	hca->ethernet = !strcmp(name, "ethernet");
	return hca->ethernet || !strcmp(name, "infiniband") ? 0 : -EINVAL;
}

/* After any change of the link or of the interface.  Not under sib_lock. */
void sib_ether_update(struct sib_port *p)
{
	unsigned long ev = 0, fl;
	bool up;

	spin_lock_irqsave(&sib_lock, fl);
	if (p->netdev) {
		up = sib_link_up(p);
		if (up)
			netif_carrier_on(p->netdev);
		else
			netif_carrier_off(p->netdev);
		ev = sib_port_set_state(p, up && netif_running(p->netdev) ? IB_PORT_ACTIVE :
									    IB_PORT_DOWN);
	}
	spin_unlock_irqrestore(&sib_lock, fl);
	sib_port_events(p, ev);
}

/* ---- the interfaces ---- */

static int ether_open_or_stop(struct net_device *netdev)
{
	sib_ether_update(((struct ether_priv *)netdev_priv(netdev))->port);
	return 0;
}

static netdev_tx_t ether_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	netdev->stats.tx_packets++;
	netdev->stats.tx_bytes += skb->len;
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops ether_netdev_ops = {
	.ndo_open = ether_open_or_stop,
	.ndo_stop = ether_open_or_stop,
	.ndo_start_xmit = ether_xmit,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

static int add_netdev(struct sib_port *p, struct sib_device *dev)
{
	struct net_device *netdev = alloc_etherdev(sizeof(struct ether_priv));
	const u8 *guid = (const u8 *)&p->guids[0];
	const u8 mac[ETH_ALEN] = { guid[0], guid[1], guid[2], guid[3], guid[6], guid[7] };
	int ret;

	if (!netdev)
		return -ENOMEM;
	((struct ether_priv *)netdev_priv(netdev))->port = p;
	netdev->netdev_ops = &ether_netdev_ops;
	netdev->dev_port = p->num - 1;
	netdev->max_mtu = ETH_MAX_MTU;
	SET_NETDEV_DEV(netdev, dev->ib.dev.parent);
	eth_hw_addr_set(netdev, mac);
	netif_carrier_off(netdev);
	ret = register_netdev(netdev);
	if (ret) {
		free_netdev(netdev);
		return ret;
	}
	spin_lock_irq(&sib_lock);
	p->netdev = netdev;
	spin_unlock_irq(&sib_lock);
	return ib_device_set_netdev(&dev->ib, netdev, p->num);
}

static void del_netdev(struct sib_port *p)
{
	struct net_device *netdev = p->netdev;

	if (!netdev)
		return;
	spin_lock_irq(&sib_lock);
	p->netdev = NULL;
	spin_unlock_irq(&sib_lock);
	unregister_netdev(netdev);
	free_netdev(netdev);
}

/* Before the device is registered; on failure sib_ether_del takes away what there is. */
int sib_ether_add(struct sib_device *dev)
{
	int n, ret = 0;

	for (n = 0; dev->hca->ethernet && !ret && n < sib_num_ports; n++)
		ret = add_netdev(&dev->hca->port[n], dev);
	return ret;
}

/* After ib_dealloc_device, which lets go of them. */
void sib_ether_del(struct sib_hca *hca)
{
	int n;

	for (n = 0; n < sib_num_ports; n++)
		del_netdev(&hca->port[n]);
}

/* ---- verbs ---- */

static int query_port(struct ib_device *ibdev, sib_port_nr n, struct ib_port_attr *a)
{
	struct sib_port *p = sib_port_of(ibdev, n);
	int ret = sib_command(p->hca);
	unsigned long fl;

	if (ret)
		return ret;
	spin_lock_irqsave(&sib_lock, fl);
	a->state = p->state == IB_PORT_ACTIVE ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	a->phys_state = a->state == IB_PORT_ACTIVE ? IB_PORT_PHYS_STATE_LINK_UP :
						     IB_PORT_PHYS_STATE_DISABLED;
	a->max_mtu = IB_MTU_4096;
	a->active_mtu = p->netdev ? iboe_get_mtu(p->netdev->mtu) : IB_MTU_1024;
	a->phys_mtu = ib_mtu_enum_to_int(a->active_mtu);
	a->gid_tbl_len = ETHER_GIDS;
	a->ip_gids = true;
	a->pkey_tbl_len = 1;
	a->port_cap_flags = IB_PORT_CM_SUP;
	a->max_msg_sz = 1U << 31;
	a->max_vl_num = 1;
	a->active_width = p->width_active;
	a->active_speed = p->speed_active;
	spin_unlock_irqrestore(&sib_lock, fl);
	return 0;
}

static int get_port_immutable(struct ib_device *ibdev, sib_port_nr n, struct ib_port_immutable *im)
{
	im->pkey_tbl_len = 1;
	im->gid_tbl_len = ETHER_GIDS;
	im->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE | RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	im->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ibdev, sib_port_nr n)
{
	return IB_LINK_LAYER_ETHERNET;
}

/* ib_core keeps the table. */
static int add_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static int del_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

/* Set before sib_port_ops, and therefore instead of what that has. */
const struct ib_device_ops sib_ether_ops = {
	.query_port = query_port,
	.get_port_immutable = get_port_immutable,
	.get_link_layer = get_link_layer,
	.add_gid = add_gid,
	.del_gid = del_gid,
};
