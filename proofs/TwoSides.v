(* Both sides of a time point, or of a block of them, together. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements Sides.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section TwoSides.
Variables (R : realFieldType) (S : finType).
Variables (KL : nat -> S -> S -> R) (eL : S -> R).
Variables (DL : seq S -> seq S -> R) (fL : nat -> S -> S -> R) (gL : nat -> R).
Variable occL : nat -> pred S.
Hypotheses (supL : support KL eL occL) (chgL : charges DL fL gL).
Variables (KR : nat -> S -> S -> R) (eR : S -> R).
Variables (DR : seq S -> seq S -> R) (fR : nat -> S -> S -> R) (gR : nat -> R).
Variable occR : nat -> pred S.
Hypotheses (supR : support KR eR occR) (chgR : charges DR fR gR).
Implicit Types (l r : seq S).

(* The left begins at y, the right at z; what lies between is a part of G. *)
Definition both (i k : nat) (y z : S) (G : seq S -> seq S -> R) : R :=
  beyond KL eL i y (fun l => beyond KR eR k z (fun r => G l r)).

Lemma two_sides i k (y y' z z' : S) (G G' : seq S -> seq S -> R) (a cL cR : R) :
    0 <= a -> 0 <= cL -> 0 <= cR ->
    (forall l r, size l = i -> size r = k -> 0 <= G' l r) ->
    (forall l l' r r', size l = i -> size l' = i -> size r = k -> size r' = k ->
       G l r <= a * DL l l' * DR r r' * G' l' r') ->
    (forall h, nonnegative i h -> moves_by DL i h ->
       beyond KL eL i y h <= cL * beyond KL eL i y' h) ->
    (forall h, nonnegative k h -> moves_by DR k h ->
       beyond KR eR k z h <= cR * beyond KR eR k z' h) ->
  both i k y z G <= a * cL * cR * both i k y' z' G'.
Proof.
move=> a0 cL0 cR0 G0 GG' left right.
pose T := (i.-tuple S * k.-tuple S)%type.
pose t0 : T := ([tuple of nseq i y], [tuple of nseq k y]).
pose F l r (t : T) := DL l t.1 * DR r t.2 * G' t.1 t.2.
pose h l r := minimum t0 (F l r).
have F0 l r t : 0 <= F l r t.
  by rewrite !mulr_ge0 ?(charge_ge0 chgL) ?(charge_ge0 chgR) ?G0 ?size_tuple.
have h0 l r : 0 <= h l r by apply: le_minimum.
have hle l r : size l = i -> size r = k -> h l r <= G' l r.
  move=> /eqP sl /eqP sr.
  have := minimum_le t0 (F l r) (Tuple sl, Tuple sr).
  by rewrite /F /= (charge_refl chgL) (charge_refl chgR) !mul1r.
have leh l r : size l = i -> size r = k -> G l r <= a * h l r.
  move=> sl sr; rewrite /h /minimum; set t := [arg min_(t < t0) _]%O.
  by rewrite /F !mulrA; apply: GG'; rewrite ?size_tuple.
have hR l : moves_by DR k (h l).
  move=> r r' sr sr'; rewrite {2}/h /minimum; set t := [arg min_(t < t0) _]%O.
  apply: le_trans (minimum_le _ _ t) _; rewrite /F.
  rewrite [X in _ <= X]mulrA [X in _ <= X * _]mulrCA.
  apply: ler_wpmul2r; first by rewrite G0 ?size_tuple.
  apply: ler_wpmul2l; first exact: (charge_ge0 chgL).
  by apply: (charge_triangle chgR); rewrite ?size_tuple ?sr ?sr'.
have hL r l l' : size l = i -> size l' = i -> h l r <= DL l l' * h l' r.
  move=> sl sl'; rewrite {2}/h /minimum; set t := [arg min_(t < t0) _]%O.
  apply: le_trans (minimum_le _ _ t) _; rewrite /F !mulrA.
  apply: ler_wpmul2r; first by rewrite G0 ?size_tuple.
  apply: ler_wpmul2r; first exact: (charge_ge0 chgR).
  by apply: (charge_triangle chgL); rewrite ?size_tuple ?sl ?sl'.
pose v l := beyond KR eR k z' (h l).
have v0 : nonnegative i v by move=> l _; apply: (beyond_ge0 supR).
have vL : moves_by DL i v.
  by move=> l l' sl sl'; rewrite -(beyond_scale KR eR); apply: (beyond_le supR) => r _; apply: hL.
apply: (@le_trans _ _ (beyond KL eL i y (fun l => a * cR * v l))).
  apply: (beyond_le supL) => l sl; rewrite -mulrA.
  apply: (@le_trans _ _ (beyond KR eR k z (fun r => a * h l r))).
    by apply: (beyond_le supR) => r sr; exact: leh.
  by rewrite (beyond_scale KR eR) ler_wpmul2l // right.
rewrite (beyond_scale KL eL) [a * cL * cR]mulrAC -[X in _ <= X]mulrA.
apply: ler_wpmul2l; first exact: mulr_ge0.
apply: le_trans (left _ v0 vL) _; apply: ler_wpmul2l => //.
apply: (beyond_le supL) => l sl; apply: (beyond_le supR) => r sr; exact: hle.
Qed.

End TwoSides.
