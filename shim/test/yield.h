/*
 * yield.h: put before a file of the shim (-include): each of its atomic operations may let another thread of schedules.c go on.
 * GCC's stdatomic.h is made of these builtins.
 */
#ifndef YIELD_H
#define YIELD_H

void schedule_point(void);

#define __atomic_load(...) (schedule_point(), __atomic_load(__VA_ARGS__))
#define __atomic_store(...) (schedule_point(), __atomic_store(__VA_ARGS__))
#define __atomic_exchange(...) (schedule_point(), __atomic_exchange(__VA_ARGS__))
#define __atomic_compare_exchange(...) (schedule_point(), __atomic_compare_exchange(__VA_ARGS__))
#define __atomic_fetch_add(...) (schedule_point(), __atomic_fetch_add(__VA_ARGS__))
#define __atomic_fetch_sub(...) (schedule_point(), __atomic_fetch_sub(__VA_ARGS__))
#define __atomic_fetch_or(...) (schedule_point(), __atomic_fetch_or(__VA_ARGS__))
#define __atomic_fetch_and(...) (schedule_point(), __atomic_fetch_and(__VA_ARGS__))

#endif
