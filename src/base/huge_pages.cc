#include "base/huge_pages.h"

#include <sys/prctl.h>

#include "base/file.h"
#include "base/str_cat.h"

namespace stoker {

std::string huge_pages_refusal(const std::string& root) {
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
  const auto setting = read_text(root + path, 4096);
  if (!setting) return str_cat("the system has none (", path, ")");
  if (setting->find("[never]") != std::string::npos) return str_cat(path, " says never");
  if (::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1) return "denied to this process (PR_SET_THP_DISABLE)";
  return "";
}

}  // namespace stoker
