# SPDX-License-Identifier: GPL-2.0-only
# M_Key: a port with an unknown key, then a port whose key the SM has
load
sh $fabric up
knob softib0/1 m_key 0x1234
knob softib0/1 m_key_protect 1
sh $fabric sm start
stays 3 "key of somebody else, level 1: the SM reads but cannot set" "$init"
check "PortInfo hides the key" 'inside smpquery -K -D portinfo 0,1 1 | grep -q "Mkey:.*0x0000000000000000"'
check "violations are counted" '[ "$(inside smpquery -D portinfo 0,1 1 | sed -n "s/^MkeyViolations:\.*//p")" -gt 0 ]'
knob softib0/1 m_key_protect 2
check "level 2: nothing is answered" '! inside smpquery -t 300 -D nodeinfo 0,1 > /dev/null 2>&1'
check "level 2: with the key all is" 'inside smpquery -y 0x1234 -D nodeinfo 0,1 > /dev/null'
sh $fabric sm hang
knob softib0/1 m_key_protect 0
check "level 0: PortInfo shows the key" 'inside smpquery -K -D portinfo 0,1 1 | grep -q "0x0000000000001234"'
sh $fabric sm resume
wait_for 20 "level 0: the SM uses what it has read: ACTIVE" "$active"
sh $fabric sm stop
knob softib0/1 m_key 0
knob softib0/1 m_key_protect 0
echo 'm_key 0x5678' > /run/opensm.conf
echo 'm_key_protection_level 2' >> /run/opensm.conf
export FABRIC_SM_OPTIONS='-F /run/opensm.conf'
sh $fabric sm start
wait_for 20 "an SM with a key: ACTIVE" "$active"
wait_for 10 "the port has its key" '[ "$(knob softib0/1 m_key)" = 0x5678 ]'
check "others get no answer" '! inside smpquery -t 300 -D portinfo 0,1 1 > /dev/null 2>&1'
