#pragma once

/// Names for clang's -Wthread-safety; nothing for other compilers.
#if defined(__clang__)
#define STOKER_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define STOKER_THREAD_ATTRIBUTE(x)
#endif

#define CAPABILITY(name) STOKER_THREAD_ATTRIBUTE(capability(name))
#define SCOPED_CAPABILITY STOKER_THREAD_ATTRIBUTE(scoped_lockable)
#define GUARDED_BY(mutex) STOKER_THREAD_ATTRIBUTE(guarded_by(mutex))
#define PT_GUARDED_BY(mutex) STOKER_THREAD_ATTRIBUTE(pt_guarded_by(mutex))
#define REQUIRES(...) STOKER_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) STOKER_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) STOKER_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) STOKER_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define EXCLUDES(...) STOKER_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRED_BEFORE(...) STOKER_THREAD_ATTRIBUTE(acquired_before(__VA_ARGS__))
#define ACQUIRED_AFTER(...) STOKER_THREAD_ATTRIBUTE(acquired_after(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS STOKER_THREAD_ATTRIBUTE(no_thread_safety_analysis)
