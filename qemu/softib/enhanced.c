// SPDX-License-Identifier: GPL-2.0-only
/*
 * Enhanced IPoIB: the network device below ib_ipoib is the HCA's own (struct
 * rdma_netdev), as on ConnectX-4 and later.  ib_ipoib keeps joins, paths and
 * neighbours; queues, MTU and addresses are here.  There is no connected mode.
 *
 * The data path is a UD QP made through the verbs, so that P_Keys, MTU, black
 * holes and counters of the port apply to it as to any other.
 */
#include <linux/delay.h>
#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include "softib.h"

#define SENDS		128
#define RECVS		256
#define DEFAULT_QKEY	0xb1b		/* until the broadcast group says (mlx5's too) */

/* ib_ipoib's layout of a received packet: no address, then encapsulation (RFC 4391, section 6) */
#define PSEUDO_LEN	20
#define ENCAP_LEN	4

static bool enhanced[SIB_MAX_HCAS];
static unsigned int num_enhanced;
module_param_array(enhanced, bool, &num_enhanced, 0444);
MODULE_PARM_DESC(enhanced, "enhanced IPoIB, by HCA; the last value stands for the rest");
static unsigned int open_ms;
module_param(open_ms, uint, 0644);
MODULE_PARM_DESC(open_ms, "how long enhanced IPoIB takes to open its queues, RTNL held");

struct sib_recv {
	struct ib_cqe	cqe;
	struct ib_grh	grh;		/* the wire writes on into data */
	u8		data[SIB_UD_MAX];
};

struct sib_netdev {
	struct rdma_netdev	rn;		/* first: ib_ipoib finds it at netdev_priv() */
	struct net_device	*dev;
	struct ib_pd		*pd;
	struct ib_cq		*cq;
	struct ib_qp		*qp;
	struct sib_recv		*recv;
	u16			pkey_index;
	u32			qkey;
	bool			up;		/* written under netif_tx_lock */
	atomic_t		sends, recvs;	/* posted and not completed */
	wait_queue_head_t	idle;
};

bool sib_is_enhanced(const struct sib_hca *hca)
{
	return num_enhanced && enhanced[sib_list_index(hca, num_enhanced)];
}

/* ---- receiving; softirq ---- */

static u8 packet_type(const struct net_device *dev, const struct sib_recv *r,
		      const struct ib_wc *wc)
{
	if (!(wc->wc_flags & IB_WC_GRH) || r->grh.dgid.raw[0] != 0xff)
		return PACKET_HOST;
	if (!memcmp(r->grh.dgid.raw, dev->broadcast + 4, sizeof(r->grh.dgid)))
		return PACKET_BROADCAST;
	return PACKET_MULTICAST;
}

static void deliver(struct net_device *dev, const struct sib_recv *r, const struct ib_wc *wc)
{
	u32 len = wc->byte_len - sizeof(r->grh);
	struct sk_buff *skb;

	if (len < ENCAP_LEN) {
		dev->stats.rx_length_errors++;
		return;
	}
	skb = netdev_alloc_skb(dev, PSEUDO_LEN + len);
	if (!skb) {
		dev->stats.rx_dropped++;
		return;
	}
	skb_put_zero(skb, PSEUDO_LEN);
	skb_put_data(skb, r->data, len);
	skb->protocol = *(__be16 *)r->data;
	skb->pkt_type = packet_type(dev, r, wc);
	skb_reset_mac_header(skb);
	skb_pull(skb, PSEUDO_LEN + ENCAP_LEN);
	dev->stats.rx_packets++;
	dev->stats.rx_bytes += len;
	if (skb->pkt_type != PACKET_HOST)
		dev->stats.multicast++;
	netif_receive_skb(skb);
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc);

static int post_recv(struct sib_netdev *n, struct sib_recv *r)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)&r->grh, .length = sizeof(r->grh) + sizeof(r->data),
		.lkey = n->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &r->cqe, .sg_list = &sge, .num_sge = 1 };

	r->cqe.done = recv_done;
	return ib_post_recv(n->qp, &wr, NULL);
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sib_recv *r = container_of(wc->wr_cqe, struct sib_recv, cqe);
	struct sib_netdev *n = cq->cq_context;

	if (!wc->status) {
		deliver(n->dev, r, wc);
		if (!post_recv(n, r))
			return;
	}
	if (atomic_dec_and_test(&n->recvs))
		wake_up(&n->idle);
}

/* ---- sending ---- */

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sk_buff *skb = container_of((void *)wc->wr_cqe, struct sk_buff, cb);
	struct sib_netdev *n = cq->cq_context;
	struct net_device *dev = n->dev;
	int left;

	if (wc->status) {
		dev->stats.tx_errors++;
	} else {
		dev->stats.tx_packets++;
		dev->stats.tx_bytes += skb->len;
	}
	dev_consume_skb_any(skb);
	left = atomic_dec_return(&n->sends);
	if (!left)
		wake_up(&n->idle);
	if (left <= SENDS / 2 && READ_ONCE(n->up) && netif_queue_stopped(dev))
		netif_wake_queue(dev);
}

/*
 * Under netif_tx_lock.  The skb has no fragments: the device has no NETIF_F_SG.
 * The result is for ib_ipoib's own send ring, which is not in use.
 */
static int netdev_send(struct net_device *dev, struct sk_buff *skb, struct ib_ah *ah, u32 qpn)
{
	struct sib_netdev *n = netdev_priv(dev);
	struct ib_cqe *cqe = (struct ib_cqe *)skb->cb;
	struct ib_sge sge = {
		.addr = (uintptr_t)skb->data, .length = skb->len, .lkey = n->pd->local_dma_lkey,
	};
	struct ib_ud_wr wr = {
		.wr = {
			.wr_cqe = cqe, .sg_list = &sge, .num_sge = 1,
			.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED,
		},
		.ah = ah, .remote_qpn = qpn, .remote_qkey = n->qkey,
	};

	if (!n->up)
		goto drop;
	cqe->done = send_done;
	if (atomic_inc_return(&n->sends) == SENDS)
		netif_stop_queue(dev);
	if (ib_post_send(n->qp, &wr.wr, NULL)) {
		atomic_dec(&n->sends);
		goto drop;
	}
	/* all may have completed before the queue was stopped */
	smp_mb__after_atomic();
	if (netif_queue_stopped(dev) && atomic_read(&n->sends) <= SENDS / 2)
		netif_wake_queue(dev);
	return 0;
drop:
	dev->stats.tx_dropped++;
	dev_kfree_skb_any(skb);
	return 0;
}

/* ---- the queue pair; under RTNL ---- */

static int qp_to_rts(struct sib_netdev *n)
{
	struct ib_qp_attr a = {
		.qp_state = IB_QPS_INIT, .pkey_index = n->pkey_index, .port_num = n->rn.port_num,
		.qkey = n->qkey,
	};
	int ret;

	ret = ib_modify_qp(n->qp, &a, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY);
	if (ret)
		return ret;
	a.qp_state = IB_QPS_RTR;
	ret = ib_modify_qp(n->qp, &a, IB_QP_STATE);
	if (ret)
		return ret;
	a.qp_state = IB_QPS_RTS;
	return ib_modify_qp(n->qp, &a, IB_QP_STATE | IB_QP_SQ_PSN);
}

/* Everything posted completes in the error state; then there is nothing left to reset. */
static void qp_to_reset(struct sib_netdev *n)
{
	struct ib_qp_attr a = { .qp_state = IB_QPS_ERR };

	ib_modify_qp(n->qp, &a, IB_QP_STATE);
	wait_event(n->idle, !atomic_read(&n->sends) && !atomic_read(&n->recvs));
	a.qp_state = IB_QPS_RESET;
	ib_modify_qp(n->qp, &a, IB_QP_STATE);
}

static void set_up(struct net_device *dev, bool up)
{
	struct sib_netdev *n = netdev_priv(dev);

	netif_tx_lock_bh(dev);
	WRITE_ONCE(n->up, up);
	netif_tx_unlock_bh(dev);
}

static int netdev_open(struct net_device *dev)
{
	struct sib_netdev *n = netdev_priv(dev);
	int i, ret;

	if (open_ms)
		msleep(open_ms);
	ret = qp_to_rts(n);
	for (i = 0; !ret && i < RECVS; i++) {
		atomic_inc(&n->recvs);
		ret = post_recv(n, &n->recv[i]);
		if (ret)
			atomic_dec(&n->recvs);
	}
	if (ret) {
		netdev_err(dev, "queues do not open: %d\n", ret);
		qp_to_reset(n);
		return ret;
	}
	set_up(dev, true);
	return 0;
}

/* ib_ipoib also stops what was never opened: a port without the P_Key. */
static int netdev_stop(struct net_device *dev)
{
	struct sib_netdev *n = netdev_priv(dev);

	if (!n->up)
		return 0;
	set_up(dev, false);
	qp_to_reset(n);
	return 0;
}

/*
 * ib_ipoib turns the carrier off before the change and on after it.  Like mlx5i, this
 * reopens the queues even if the MTU of the group keeps the old value.
 */
static int netdev_change_mtu(struct net_device *dev, int mtu)
{
	struct sib_netdev *n = netdev_priv(dev);
	bool up = n->up;

	netdev_stop(dev);
	WRITE_ONCE(dev->mtu, mtu);
	return up ? netdev_open(dev) : 0;
}

static void free_objects(struct sib_netdev *n)
{
	if (!IS_ERR_OR_NULL(n->qp))
		ib_destroy_qp(n->qp);
	if (!IS_ERR_OR_NULL(n->cq))
		ib_free_cq(n->cq);
	if (!IS_ERR_OR_NULL(n->pd))
		ib_dealloc_pd(n->pd);
	kvfree(n->recv);
}

static int make_objects(struct sib_netdev *n)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_UD, .sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = {
			.max_send_wr = SENDS, .max_recv_wr = RECVS,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};

	n->recv = kvcalloc(RECVS, sizeof(*n->recv), GFP_KERNEL);
	if (!n->recv)
		return -ENOMEM;
	n->pd = ib_alloc_pd(n->rn.hca, 0);
	if (IS_ERR(n->pd))
		return PTR_ERR(n->pd);
	n->cq = ib_alloc_cq(n->rn.hca, n, SENDS + RECVS, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(n->cq))
		return PTR_ERR(n->cq);
	init.send_cq = n->cq;
	init.recv_cq = n->cq;
	n->qp = ib_create_qp(n->pd, &init);
	return PTR_ERR_OR_ZERO(n->qp);
}

static int netdev_init(struct net_device *dev)
{
	struct sib_netdev *n = netdev_priv(dev);
	int ret = make_objects(n);
	u8 qpn[3];

	if (ret) {
		free_objects(n);
		return ret;
	}
	qpn[0] = n->qp->qp_num >> 16;
	qpn[1] = n->qp->qp_num >> 8;
	qpn[2] = n->qp->qp_num;
	/* the octet of flags before it stays 0: no connected mode (RFC 4755, section 5) */
	dev_addr_mod(dev, 1, qpn, sizeof(qpn));
	return 0;
}

static void netdev_uninit(struct net_device *dev)
{
	netdev_stop(dev);
	free_objects(netdev_priv(dev));
}

static const struct net_device_ops netdev_ops = {
	.ndo_init = netdev_init,
	.ndo_uninit = netdev_uninit,
	.ndo_open = netdev_open,
	.ndo_stop = netdev_stop,
	.ndo_change_mtu = netdev_change_mtu,
};

/* ---- what ib_ipoib asks for ---- */

static void set_id(struct net_device *dev, int id)
{
	struct sib_netdev *n = netdev_priv(dev);

	n->pkey_index = id;	/* counts when the queues open */
}

static int attach_mcast(struct net_device *dev, struct ib_device *hca, union ib_gid *gid,
			u16 mlid, int set_qkey, u32 qkey)
{
	struct sib_netdev *n = netdev_priv(dev);
	struct ib_qp_attr a = { .qkey = qkey };
	int ret = 0;

	if (set_qkey) {
		n->qkey = qkey;
		if (n->up)
			ret = ib_modify_qp(n->qp, &a, IB_QP_QKEY);
	}
	return ret ?: ib_attach_mcast(n->qp, gid, mlid);
}

static int detach_mcast(struct net_device *dev, struct ib_device *hca, union ib_gid *gid, u16 mlid)
{
	struct sib_netdev *n = netdev_priv(dev);

	return ib_detach_mcast(n->qp, gid, mlid);
}

/* ib_ipoib's own would reach for its queues, which do not exist. */
static void get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	struct sib_netdev *n = netdev_priv(dev);

	strscpy(info->driver, "softib[ib_ipoib]", sizeof(info->driver));
	strscpy(info->bus_info, dev_name(n->rn.hca->dev.parent), sizeof(info->bus_info));
	ib_get_device_fw_str(n->rn.hca, info->fw_version);
}

static const struct ethtool_ops netdev_ethtool_ops = {
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
};

/* Parents and P_Key children alike: each has a QP of its own. */
static int setup(struct ib_device *hca, sib_port_nr port, struct net_device *dev, void *unused)
{
	struct sib_netdev *n = netdev_priv(dev);

	n->rn.hca = hca;
	n->rn.port_num = port;
	n->rn.set_id = set_id;
	n->rn.send = netdev_send;
	n->rn.attach_mcast = attach_mcast;
	n->rn.detach_mcast = detach_mcast;
	n->dev = dev;
	n->qkey = DEFAULT_QKEY;
	init_waitqueue_head(&n->idle);
	netif_carrier_off(dev);
	dev->netdev_ops = &netdev_ops;
	dev->ethtool_ops = &netdev_ethtool_ops;
	return 0;
}

static int get_params(struct ib_device *hca, sib_port_nr port, enum rdma_netdev_t type,
		      struct rdma_netdev_alloc_params *p)
{
	if (type != RDMA_NETDEV_IPOIB)
		return -EOPNOTSUPP;
	*p = (struct rdma_netdev_alloc_params){
		.sizeof_priv = sizeof(struct sib_netdev), .txqs = 1, .rxqs = 1,
		.initialize_rdma_netdev = setup,
	};
	return 0;
}

const struct ib_device_ops sib_enhanced_ops = {
	.rdma_netdev_get_params = get_params,
};
