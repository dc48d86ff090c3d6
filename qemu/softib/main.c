// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module, its slots and the HCAs in them.
 *
 * An HCA is a platform device bound by a platform driver, or a PCI function bound
 * by a PCI driver (pci.c), so that async_probe, bind and unbind of the kernel work.
 * The values of the card and of its cables (GUIDs, knobs) outlive the bound
 * device; the values that firmware loses (LID, M_Key, P_Keys, counters) do not.
 */
#include "softib.h"

static unsigned int hcas = 2;
module_param(hcas, uint, 0444);
MODULE_PARM_DESC(hcas, "number of HCAs; 0-1, 2-3, ... are cabled together");
unsigned int sib_num_ports = 1;
module_param_named(ports, sib_num_ports, uint, 0444);
MODULE_PARM_DESC(ports, "ports per HCA, 1 to 16");
unsigned int sib_num_pkeys = SIB_PKEY_BLOCK;
module_param_named(pkeys, sib_num_pkeys, uint, 0444);
MODULE_PARM_DESC(pkeys, "entries of a P_Key table, 1 to 128");
unsigned int sib_num_gids = 1;
module_param_named(gids, sib_num_gids, uint, 0444);
MODULE_PARM_DESC(gids, "entries of a GID table, 1 to 16");
static u64 node_guid[SIB_MAX_HCAS];
static unsigned int node_guid_count;
module_param_array(node_guid, ullong, &node_guid_count, 0444);
MODULE_PARM_DESC(node_guid, "node GUID of each HCA, 0: none; those that follow have their own");
static bool grh_required[SIB_MAX_HCAS];
static unsigned int grh_required_count;
module_param_array(grh_required, bool, &grh_required_count, 0444);
MODULE_PARM_DESC(grh_required, "the ports of each HCA want a GRH, as a virtual function's do");
static bool present = true;
module_param(present, bool, 0444);
MODULE_PARM_DESC(present, "the HCAs are in their slots at load");
static bool cable = true;
module_param(cable, bool, 0444);
MODULE_PARM_DESC(cable, "the cables are plugged in at load");
static char *width = "4x";
module_param(width, charp, 0444);
MODULE_PARM_DESC(width, "widest link at load: 1x 2x 4x 8x 12x");
static char *speed = "qdr";
module_param(speed, charp, 0444);
MODULE_PARM_DESC(speed, "fastest lane at load: sdr ddr qdr fdr edr hdr ndr");
static char *mtu = "4096";
module_param(mtu, charp, 0444);
MODULE_PARM_DESC(mtu, "MTUCap at load: 256 512 1024 2048 4096");
static unsigned int train_ms;
module_param(train_ms, uint, 0444);
MODULE_PARM_DESC(train_ms, "how long a link trains, at load");
static bool warm;
module_param(warm, bool, 0444);
MODULE_PARM_DESC(warm, "the links are up and ACTIVE before the driver registers");
static bool ibv;
module_param(ibv, bool, 0444);
MODULE_PARM_DESC(ibv, "pose as rxe towards libibverbs, so that ibv_devinfo works");

DEFINE_SPINLOCK(sib_lock);
DEFINE_XARRAY_FLAGS(sib_qps, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
DEFINE_XARRAY_FLAGS(sib_mrs, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
LIST_HEAD(sib_all_qps);

static struct sib_hca *slots[SIB_MAX_HCAS];
static struct sib_link links[SIB_MAX_HCAS / 2][SIB_MAX_PORTS];

/* NULL past the last one. */
struct sib_hca *sib_hca_slot(int i)
{
	return i < hcas ? slots[i] : NULL;
}

static void hca_power(struct sib_hca *hca, bool on)
{
	int n;

	for (n = 0; n < sib_num_ports; n++)
		sib_port_power(&hca->port[n], on);
}

/*
 * Runs after the driver is unbound.  While the slot has power, consumers leave
 * their multicast groups and close their connections over a working link; the
 * other end loses the link only after that.
 */
void sib_hca_down(void *data)
{
	struct sib_hca *hca = data;
	struct sib_device *dev = hca->dev;

	ib_unregister_device(&dev->ib);
	hca_power(hca, false);
	spin_lock_irq(&sib_lock);
	hca->dev = NULL;
	spin_unlock_irq(&sib_lock);
	ib_dealloc_device(&dev->ib);
	sib_ether_del(hca);
}

void sib_device_setup(struct sib_device *dev, struct sib_hca *hca)
{
	struct ib_device *ib = &dev->ib;

	dev->hca = hca;
	hca->grh_required = READ_ONCE(hca->grh_knob);
	ib->node_type = RDMA_NODE_IB_CA;
	ib->phys_port_cnt = sib_num_ports;
	ib->num_comp_vectors = 1;
	ib->node_guid = hca->node_guid;
	ib->local_dma_lkey = SIB_LOCAL_LKEY;
	ib->dev.parent = hca->parent;
	strscpy(ib->node_desc, hca->name, sizeof(ib->node_desc));
	ib_set_device_ops(ib, &sib_device_ops);
	ib_set_device_ops(ib, &sib_port_ops);
	ib_set_device_ops(ib, &sib_cq_ops);
	ib_set_device_ops(ib, &sib_qp_ops);
	ib_set_device_ops(ib, &sib_mr_ops);
	if (ibv)
		ib_set_device_ops(ib, &sib_rxe_ops);
	if (sib_is_enhanced(hca))
		ib_set_device_ops(ib, &sib_enhanced_ops);
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 14, 0)
	rdma_set_device_sysfs_group(ib, &sib_attr_group);
#endif
}

/* The driver's probe on either bus: parent is the platform device or the PCI function. */
int sib_hca_up(struct sib_hca *hca, struct device *parent)
{
	struct sib_device *dev;
	int ret, n;

	hca->parent = parent;
	ret = sib_fault_probe(hca, parent);
	if (ret)
		return ret;
	dev = ib_alloc_device(sib_device, ib);
	if (!dev)
		return -ENOMEM;
	if (hca->ethernet)
		ib_set_device_ops(&dev->ib, &sib_ether_ops);
	ib_set_device_ops(&dev->ib, &sib_smi_parent_ops);
	sib_device_setup(dev, hca);
	/* the first driver powers the ports, unless the links are warm */
	for (n = 0; !hca->powered && n < sib_num_ports; n++)
		sib_port_reset(&hca->port[n]);
	spin_lock_irq(&sib_lock);
	hca->dev = dev;
	spin_unlock_irq(&sib_lock);
	ret = sib_ether_add(dev);
	/* a NULL dma_device: SGE addresses are kernel virtual addresses, a copy is a memcpy */
	if (!ret)
		ret = ib_register_device(&dev->ib, hca->name, NULL);
	if (ret) {
		spin_lock_irq(&sib_lock);
		hca->dev = NULL;
		spin_unlock_irq(&sib_lock);
		ib_dealloc_device(&dev->ib);
		sib_ether_del(hca);
		return ret;
	}
	hca_power(hca, true);
	dev_info(parent, "%s\n", hca->name);
	/* not .remove, whose return type differs between 6.1 and 6.12 */
	return devm_add_action_or_reset(parent, sib_hca_down, hca) ?: sib_smi_add(hca);
}

static int sib_probe(struct platform_device *pdev)
{
	return sib_hca_up(slots[pdev->id], &pdev->dev);
}

static struct platform_driver sib_driver = {
	.driver.name = "softib",
	.probe = sib_probe,
};

/* Plug the card in; the driver core decides whether a driver binds to it. */
int sib_hca_insert(struct sib_hca *hca)
{
	struct platform_device *pdev;
	int ret = 0;

	mutex_lock(&hca->slot);
	if (sib_on_pci)
		ret = sib_pci_insert(hca);
	if (sib_on_pci || hca->pdev)
		goto out;
	pdev = platform_device_alloc("softib", hca->index);
	if (!pdev) {
		ret = -ENOMEM;
		goto out;
	}
	hca->pdev = pdev;
	WRITE_ONCE(hca->gone, false);
	ret = platform_device_add(pdev);
	if (ret) {
		hca->pdev = NULL;
		platform_device_put(pdev);
	}
out:
	mutex_unlock(&hca->slot);
	return ret;
}

/* The device is gone while its driver still holds it. */
void sib_hca_lost(struct sib_hca *hca)
{
	WRITE_ONCE(hca->gone, true);
	sib_port_events(&hca->port[0], SIB_EV(DEVICE_FATAL));
	hca_power(hca, false);
}

static int hca_remove(struct sib_hca *hca, bool surprise)
{
	int ret = -ENODEV;

	mutex_lock(&hca->slot);
	if (sib_on_pci && surprise) {
		ret = sib_pci_pull(hca);
	} else if (hca->pdev) {
		if (surprise)
			sib_hca_lost(hca);
		platform_device_unregister(hca->pdev);
		hca->pdev = NULL;
		ret = 0;
	}
	mutex_unlock(&hca->slot);
	return ret;
}

/* Hot removal: the power goes first, the driver is notified afterwards. */
int sib_hca_pull(struct sib_hca *hca)
{
	cancel_delayed_work_sync(&hca->insert);
	return hca_remove(hca, true);
}

static void insert_work(struct work_struct *work)
{
	struct sib_hca *hca = container_of(to_delayed_work(work), struct sib_hca, insert);
	int ret = sib_hca_insert(hca);

	if (ret)
		pr_err("%s: no return after reset: %d\n", hca->name, ret);
}

/* Firmware reset: the HCA disappears at once and returns after the given time. */
int sib_hca_reset(struct sib_hca *hca, u32 ms)
{
	int ret = sib_hca_pull(hca);

	if (!ret)
		schedule_delayed_work(&hca->insert, msecs_to_jiffies(ms));
	return ret;
}

/* No knob is left that could end one. */
static void end_hangs(void)
{
	int i;

	for (i = 0; i < hcas; i++)
		WRITE_ONCE(slots[i]->hang_ms, 0);
}

/*
 * In the order of the slots: by convention the subnet manager runs on an odd
 * HCA, and the even HCAs need its answers during their removal.
 */
static void remove_devices(void)
{
	int i;

	for (i = 0; i < hcas; i++) {
		cancel_delayed_work_sync(&slots[i]->insert);
		hca_remove(slots[i], false);
	}
}

/* After sib_wire_exit(): a late packet points to its port. */
static void free_slots(void)
{
	int i, n;

	for (i = 0; i < hcas; i += 2)
		for (n = 0; n < sib_num_ports; n++)
			sib_link_exit(&links[i / 2][n]);
	for (i = 0; i < hcas; i++) {
		for (n = 0; n < sib_num_ports; n++)
			sib_port_exit(&slots[i]->port[n]);
		kfree(slots[i]);
		slots[i] = NULL;
	}
}

static int make_slot(int i)
{
	struct sib_hca *hca = kzalloc(sizeof(*hca), GFP_KERNEL);
	struct sib_port *p;
	int n, ret;

	if (!hca)
		return -ENOMEM;
	hca->index = i;
	snprintf(hca->name, sizeof(hca->name), "softib%d", i);
	hca->guid = cpu_to_be64(0x0250f7000000a000ULL + i * 0x10);
	hca->node_guid = i < node_guid_count ? cpu_to_be64(node_guid[i]) : hca->guid;
	hca->grh_knob = grh_required[sib_list_index(hca, grh_required_count)];
	mutex_init(&hca->slot);
	INIT_DELAYED_WORK(&hca->insert, insert_work);
	sib_fault_init(hca);
	sib_smi_init(hca);
	ret = sib_ether_init(hca);
	if (ret) {
		kfree(hca);
		return ret;
	}
	for (n = 0; n < sib_num_ports; n++) {
		p = &hca->port[n];
		p->cable = cable;
		p->train_ms = train_ms;
		ret = sib_port_init(p, hca, n + 1) ?:
		      sib_parse_width(width, &p->width_supported) ?:
		      sib_parse_speed(speed, &p->speed_supported) ?:
		      sib_parse_mtu(mtu, &p->mtu_cap);
		if (ret) {
			kfree(hca);
			return ret;
		}
		sib_port_reset(p);
	}
	slots[i] = hca;
	return 0;
}

static int make_slots(void)
{
	int i, n, ret;

	for (i = 0; i < hcas; i++) {
		ret = make_slot(i);
		if (ret)
			break;
	}
	if (ret) {
		while (i--)
			kfree(slots[i]);
		return ret;
	}
	for (i = 0; i < hcas; i += 2)
		for (n = 0; n < sib_num_ports; n++)
			sib_link_init(&links[i / 2][n], &slots[i]->port[n],
				      i + 1 < hcas ? &slots[i + 1]->port[n] : NULL);
	return 0;
}

/* Every card has power before any driver is bound to one. */
static void warm_up(void)
{
	int i, n;

	for (i = 0; i < hcas; i++)
		slots[i]->powered = slots[i]->pdev || sib_pci_present(slots[i]);
	for (i = 0; i < hcas; i += 2)
		for (n = 0; n < sib_num_ports; n++)
			sib_link_warm(&links[i / 2][n]);
}

static int __init sib_init(void)
{
	int i, ret;

	if (!in_range(hcas, 1, SIB_MAX_HCAS) || !in_range(sib_num_ports, 1, SIB_MAX_PORTS) ||
	    !in_range(sib_num_pkeys, 1, SIB_MAX_PKEYS) ||
	    !in_range(sib_num_gids, 1, SIB_MAX_GIDS)) {
		pr_err("softib: hcas is 1 to %d, ports 1 to %d, pkeys 1 to %d, gids 1 to %d\n",
		       SIB_MAX_HCAS, SIB_MAX_PORTS, SIB_MAX_PKEYS, SIB_MAX_GIDS);
		return -EINVAL;
	}
	ret = make_slots();
	if (ret)
		return ret;
	ret = sib_wire_init();
	if (ret)
		goto err_slots;
	/* the cards exist before their driver, as on hardware */
	if (sib_on_pci)
		sib_pci_scan();
	for (i = 0; present && !sib_on_pci && i < hcas; i++) {
		ret = sib_hca_insert(slots[i]);
		if (ret)
			goto err_wire;
	}
	/* the knobs exist before the driver probes */
	sib_knobs_init();
	for (i = 0; i < hcas; i++)
		sib_knobs_add(slots[i]);
	if (warm)
		warm_up();
	ret = sib_on_pci ? sib_pci_register() : platform_driver_register(&sib_driver);
	if (ret)
		goto err_knobs;
	return 0;

err_knobs:
	sib_knobs_exit();
err_wire:
	remove_devices();
	sib_wire_exit();
err_slots:
	free_slots();
	return ret;
}

static void __exit sib_exit(void)
{
	sib_knobs_exit();
	end_hangs();
	if (sib_on_pci)
		sib_pci_unregister();
	remove_devices();
	if (!sib_on_pci)
		platform_driver_unregister(&sib_driver);
	sib_wire_exit();
	free_slots();
}

module_init(sib_init);
module_exit(sib_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Software InfiniBand HCAs, cabled back to back, for tests");
MODULE_ALIAS("platform:softib");
