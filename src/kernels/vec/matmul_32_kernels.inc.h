// The products that matmul_types.h of every set declares, of 32-blocks. Stands outside of the unnamed namespace.
const MatmulKernels kMatmulQ4_0 = kernels_of<Family32<Q4_0>>();
const MatmulKernels kMatmulQ4_1 = kernels_of<Family32<Q4_1>>();
const MatmulKernels kMatmulQ5_0 = kernels_of<Family32<Q5_0>>();
const MatmulKernels kMatmulQ5_1 = kernels_of<Family32<Q5_1>>();
const MatmulKernels kMatmulQ8_0 = kernels_of<Family32<Q8_0>>();
const MatmulKernels kMatmulIq4Nl = kernels_of<Family32<Iq4Nl>>();
const MatmulKernels kMatmulMxfp4 = kernels_of<Family32<Mxfp4>>();
