// Numbers for people.
#pragma once

#include <cstdio>
#include <string>

namespace stoker::cli {

/// As printf has it, at most 300 characters.
template <class... Args>
std::string line(const char* format, Args... args) {
  char text[300];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

inline std::string fixed(double value, int digits) { return line("%.*f", digits, value); }

}  // namespace stoker::cli
