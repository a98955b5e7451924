#include "base/math.h"

#include "base/math_functions.h"

namespace stoker::math {

float exp_f32(float x) { return functions().exp_f32(x); }
float tanh_f32(float x) { return functions().tanh_f32(x); }
float silu_f32(float x) { return functions().silu_f32(x); }
float gelu_f32(float x) { return functions().gelu_f32(x); }
float gelu_erf_f32(float x) { return functions().gelu_erf_f32(x); }
float softplus_f32(float x) { return functions().softplus_f32(x); }
double exp(double x) { return functions().exp(x); }
double log(double x) { return functions().log(x); }
double pow(double base, double y) { return functions().pow(base, y); }
SinCos sincos(double x) { return functions().sincos(x); }

}  // namespace stoker::math
