#ifndef FF_VERSION_H
#define FF_VERSION_H

#define FF_VERSION "0.1.0"
#define FF_VERSION_NUMBER 100

#endif
