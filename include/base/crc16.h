#ifndef FF_BASE_CRC16_H
#define FF_BASE_CRC16_H

#include "base/text.h"

#include <stdint.h>

/* CRC-16/XMODEM, the one that Valkey Cluster uses for slots ("123456789" gives 0x31C3). */
uint16_t ff_crc16(const void *data, size_t len);

/* The cluster slot of a key: of the text between its first '{' and the next '}' when there is any
 * there, else of the whole key. */
uint16_t ff_crc16_slot(ff_text key);

#endif
